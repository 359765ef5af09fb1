"""Custom headers: allowed and reserved names, and values that arrive unchanged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.delivery.message.compose import compose
from core.lib.email_addresses import FORBIDDEN
from emails.accept.rules.fields import RESERVED_HEADERS, RESERVED_PREFIXES
from emails.models import Email
from tests.conftest import Api, field_codes, mail
from tests.core.delivery.message.test_message import HEADERS, outgoing_message
from tests.emails.api.test_attachments import messages_by_address, parse_message, received_message
from tests.rows import each

RESERVED = [
    "From", "Sender", "Reply-To", "To", "Cc", "Bcc", "Subject", "Date", "Message-ID", "MIME-Version", "Return-Path",
    "Received", "Delivered-To", "Auto-Submitted", "Feedback-ID", "Precedence", "Authentication-Results",
]  # fmt: skip
PREFIXES = [
    "Content-", "List-", "DKIM-", "ARC-", "Resent-", "X-SMTPAPI", "X-SES-", "X-MC-", "X-PM-", "X-MSYS-", "X-Mailgun-",
    "X-MJ-", "X-Sib-",
]  # fmt: skip
BY_EXAMPLE = [
    "Content-Type", "Content-Transfer-Encoding", "List-Unsubscribe", "List-Unsubscribe-Post", "List-Id",
    "DKIM-Signature", "ARC-Seal", "Resent-To", "X-SMTPAPI-Version", "X-SES-CONFIGURATION-SET", "X-MC-Tags",
    "X-PM-Message-Stream", "X-MSYS-API", "X-Mailgun-Variables", "X-MJ-CustomID", "X-Sib-Mailin-Custom",
]  # fmt: skip
CONTROLS = ["\r", "\n", "\r\n", "\t", "\x01", "\x1b", "\x7f", "\x85", "\u2028", "\u2029", "\u202e", "\u2066"]
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-"


def is_unreserved(name: str) -> bool:
    lower = name.lower()
    return lower not in RESERVED_HEADERS and not lower.startswith(RESERVED_PREFIXES)


UNRESERVED_NAMES = st.text(ALPHABET, min_size=1, max_size=76).filter(is_unreserved)
VALUES = st.text(max_size=200).filter(lambda text: not FORBIDDEN.search(text))


def send(api: Api, headers, **fields):
    return api.post("/emails/send", mail(headers=headers, **fields))


def header_errors(response) -> dict[str, str]:
    found = field_codes(response)
    assert not Email.objects.exists()
    return found


@pytest.mark.django_db
class TestNames:
    @each("change", [str, str.lower, str.upper, str.swapcase])
    @each("names", [RESERVED, PREFIXES, BY_EXAMPLE])
    def test_reserved_headers_are_refused_in_any_case(self, api: Api, names, change):
        found = header_errors(send(api, {change(name): "x" for name in names}))
        assert found == {f"headers.{change(name)}": "reserved_header" for name in names}

    @each("name", [
            "X", "X-Entity-Ref-ID", "References", "In-Reply-To", "Importance", "X-Priority", "Organization",
            "X-From", "X-Content-Type", "X-List-Id", "Contents", "Listing", "Resent", "X-SES", "From-Us", "Date2",
            "7", "-", "a-b--c", "Reply-To-All", "X-MSYS",
        ])  # fmt: skip
    def test_similar_names_are_allowed(self, api: Api, name):
        assert send(api, {name: "value"}).status_code == 202
        assert received_message()[name] == "value"

    def test_76_characters_pass_and_77_do_not(self, api: Api):
        assert send(api, {"X" * 76: "v"}).status_code == 202
        assert received_message()["X" * 76] == "v"
        assert field_codes(send(api, {"X" * 77: "v"})) == {f"headers.{'X' * 77}": "invalid_header_name"}
        assert Email.objects.count() == 1

    @each("name", [
        "", " ", "X Y", "X:", "X_Y", "X.Y", "Ü", "X\r\nBcc", "X\n", "\tX", "X\x7f", "X\u2028", "From ", " From",
    ])  # fmt: skip
    def test_an_invalid_name_is_refused(self, api: Api, name):
        assert set(header_errors(send(api, {name: "eve@example.com"})).values()) == {"invalid_header_name"}

    @each("other", ["x-ref", "X-REF", "x-Ref"])
    def test_names_that_differ_only_by_case_are_duplicates(self, api: Api, other):
        assert header_errors(send(api, {"X-Ref": "1", other: "2"})) == {f"headers.{other}": "duplicate_header"}

    def test_all_errors_are_reported_together(self, api: Api):
        response = send(api, {"From": "x", "X-A": "a\nb", "X Y": "1", "X-B": 7, "x-a": "2"})
        assert header_errors(response) == {
            "headers.From": "reserved_header",
            "headers.X-A": "control",
            "headers.X Y": "invalid_header_name",
            "headers.X-B": "invalid",
            "headers.x-a": "duplicate_header",
        }


@pytest.mark.django_db
class TestValues:
    @each("control", CONTROLS)
    def test_a_control_character_is_refused_in_any_position(self, api: Api, control):
        values = [control, f"a{control}b", f"{control}a", f"a{control}", f"x{control}Bcc: eve@example.com"]
        found = header_errors(send(api, {f"X-{number}": value for number, value in enumerate(values)}))
        assert found == {f"headers.X-{number}": "control" for number in range(5)}

    def test_a_nul_is_invalid_json(self, api: Api):
        response = send(api, {"X-A": "a\0b"})
        assert (response.status_code, response.json()["code"]) == (400, "invalid_json")

    @each("value", [None, 7, True, ["a"], {"a": "b"}])
    def test_a_value_that_is_not_a_string_is_refused(self, api: Api, value):
        assert header_errors(send(api, {"X-A": value})).keys() == {"headers.X-A"}

    @each("character", ["v", "é", "文"])
    def test_998_characters_pass_and_999_do_not(self, api: Api, character):
        assert send(api, {"X-A": character * 998}).status_code == 202
        assert received_message()["X-A"] == character * 998
        assert field_codes(send(api, {"X-A": character * 999})) == {"headers.X-A": "max_length"}

    @each("value", [
        "", "plain", "two  blanks and one at the end ", " ", "Grüße aus Köln", "你好 世界", "مرحبا", "😀👩‍👩‍👧",
        "=?utf-8?q?=0d=0aBcc:_eve@example.com?=", "<id@example.com> <other@example.com>",
        '"quoted" (comment) <x> ; a=b', "word " * 150, "x" * 500,
    ])  # fmt: skip
    def test_a_value_arrives_unchanged(self, api: Api, value):
        response = send(api, {"X-A": value, "X-" + "B" * 74: value})
        assert api.get(f"/emails/{response.json()['id']}").json()["headers"]["X-A"] == value
        (source,) = messages_by_address().values()
        message = parse_message(source)
        assert (message["X-A"], message["X-" + "B" * 74]) == (value, value)
        assert source.isascii()
        assert max(map(len, source.split(b"\r\n"))) <= 998
        assert "Bcc" not in message

    @given(st.dictionaries(UNRESERVED_NAMES, VALUES, max_size=5))
    def test_any_headers_round_trip_and_add_no_others(self, headers):
        headers = {name.lower(): value for name, value in headers.items()}
        source = compose(outgoing_message(headers=tuple(headers.items())))
        message = parse_message(source)
        assert {name: message[name] for name in headers} == headers
        assert sorted(message.keys()) == sorted([*HEADERS, *headers])
        assert all(len(line) <= 998 for line in source.split(b"\r\n"))
        assert message.get_body(("html",)).get_content().strip() == "<p>Hi</p>"


@pytest.mark.django_db
class TestCount:
    def test_30_pass_and_31_do_not(self, api: Api):
        assert send(api, {f"X-{number}": str(number) for number in range(30)}).status_code == 202
        message = received_message()
        assert [message[f"X-{number}"] for number in range(30)] == [str(number) for number in range(30)]
        response = send(api, {f"X-{number}": "v" for number in range(31)})
        assert field_codes(response) == {"headers": "max_length"}
        assert Email.objects.count() == 1

    @each("headers", [[], "X-A: b", 7, [["X-A", "b"]]])
    def test_a_value_that_is_not_an_object_is_refused(self, api: Api, headers):
        assert header_errors(send(api, headers)) == {"headers": "invalid_type"}

    @each("headers", [{}, None])
    def test_empty_and_null_mean_none(self, api: Api, headers):
        response = api.post("/emails/send", mail() | {"headers": headers})
        assert response.status_code == 202
        assert api.get(f"/emails/{response.json()['id']}").json()["headers"] == {}

    def test_every_recipient_gets_the_headers_but_neither_tags_nor_metadata(self, api: Api):
        other = {"tags": ["secret-tag"], "metadata": {"k": "secret-value"}}
        send(api, {"X-A": "b"}, to=["a@example.com"], cc=["c@example.com"], bcc=["d@example.com"], **other)
        messages = messages_by_address()
        assert {address: parse_message(source)["X-A"] for address, source in messages.items()} == dict.fromkeys(
            ("a@example.com", "c@example.com", "d@example.com"), "b"
        )
        assert not any(b"secret" in source for source in messages.values())
