"""Malformed bodies (docs/specification.md, Conventions): the right error code, never a 500, never a partial write."""

import contextlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.api.errors import InvalidJson
from core.api.parser import parse_object
from emails.models import Acceptance, Content, Email
from tests.conftest import Api, examples, mail
from tests.rows import each

pytestmark = pytest.mark.django_db

JSON = json.dumps(mail())


def with_metadata(value: str) -> bytes:
    return (JSON[:-1] + f', "metadata": {{"a": {value}}}}}').encode()


MALFORMED = {
    "empty": b"",
    "not JSON": b"{",
    "text": b"hello",
    "trailing data": JSON.encode() + b"{}",
    "an array": b"[]",
    "a string": b'"x"',
    "null": b"null",
    "a duplicate key": b'{"to": "a@b.co", "to": "c@d.co"}',
    "a nested duplicate key": with_metadata('{"x": 1, "x": 2}'),
    "NaN": with_metadata("NaN"),
    "Infinity": with_metadata("-Infinity"),
    "an infinite number": with_metadata("1e400"),
    "an over-long number": with_metadata("1" * 65),
    "an over-long fraction": with_metadata("0." + "1" * 80),
    "an escaped NUL": with_metadata(r'"a\u0000b"'),
    "a NUL in a key": with_metadata(r'{"a\u0000": 1}'),
    "a lone high surrogate": with_metadata(r'"\ud800"'),
    "a lone low surrogate": with_metadata(r'"\udc00 x"'),
    "a surrogate in a key": with_metadata(r'{"\ud83d": 1}'),
    "a control character": with_metadata('"a\x01"'),
    "33 levels": with_metadata("[" * 31 + "]" * 31),
    "100,000 levels": b"[" * 100_000,
    "100,000 levels of objects": b'{"a":' * 100_000,
    "a byte order mark": b"\xef\xbb\xbf" + JSON.encode(),
    "UTF-16": JSON.encode("utf-16"),
    "invalid UTF-8": with_metadata('"').replace(b'"a": "', b'"a": "\xff\xfe"'),
}


def nothing_was_written() -> bool:
    return not (Email.objects.exists() or Acceptance.objects.exists() or Content.objects.exists())


@each("name", MALFORMED)
def test_a_malformed_body_is_invalid_json(api: Api, name: str):
    response = api.raw("POST", "/emails/send", MALFORMED[name])
    assert (response.status_code, response.json()["code"]) == (400, "invalid_json")
    assert response["Content-Type"] == "application/problem+json"
    assert nothing_was_written()


def test_32_levels_are_allowed(api: Api):
    assert api.raw("POST", "/emails/send", with_metadata("[" * 30 + "]" * 30)).status_code == 202


def test_complete_surrogate_pairs_are_accepted(api: Api):
    assert api.raw("POST", "/emails/send", with_metadata(r'"\ud83d\ude00"')).status_code == 202


@each(
    ("content_type", "extra", "status", "code"),
    [
        ("text/plain", {}, 415, "unsupported_media_type"),
        ("application/x-www-form-urlencoded", {}, 415, "unsupported_media_type"),
        ("multipart/form-data; boundary=x", {}, 415, "unsupported_media_type"),
        ("", {}, 415, "unsupported_media_type"),
        ("application/json", {"HTTP_CONTENT_ENCODING": "gzip"}, 415, "unsupported_media_type"),
        ("application/json", {"HTTP_TRANSFER_ENCODING": "chunked", "CONTENT_LENGTH": ""}, 411, "length_required"),
        ("application/json", {"CONTENT_LENGTH": "ten"}, 411, "length_required"),
        ("application/json", {"CONTENT_LENGTH": str(20 * 1024 * 1024 + 1)}, 413, "payload_too_large"),
    ],
)
def test_a_body_is_refused_by_its_headers(api: Api, content_type, extra, status, code):
    response = api.raw("POST", "/emails/send", JSON.encode(), content_type, **extra)
    assert (response.status_code, response.json()["code"]) == (status, code)
    assert nothing_was_written()


def test_a_charset_with_the_media_type_is_accepted(api: Api):
    assert api.raw("POST", "/emails/send", JSON.encode(), "application/json; charset=utf-8").status_code == 202


def test_the_media_type_is_checked_before_the_key():
    response = Api("wrong").raw("POST", "/emails/send", b"x", "text/plain")
    assert response.status_code == 415


@given(st.binary(max_size=200))
@settings(max_examples=examples(500))
def test_the_parser_raises_invalid_json_only(body: bytes):
    with contextlib.suppress(InvalidJson):
        assert isinstance(parse_object(body), dict)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), VALUES, max_size=5))
def test_a_valid_body_is_parsed_like_the_standard_library(value):
    text = json.dumps(value)
    try:
        assert parse_object(text.encode()) == json.loads(text)
    except InvalidJson:
        assert r"\u0000" in text or r"\ud" in text or any(len(part) > 60 for part in text.split())
