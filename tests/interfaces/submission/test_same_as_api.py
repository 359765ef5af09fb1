"""Generated addresses, header fields and charsets become the same draft over SMTP as in a request to the API."""

import base64
from email import quoprimime
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from rest_framework.exceptions import ValidationError

from core.lib.email_addresses import FORBIDDEN, Address, quote_name
from core.lib.mail.address_lists import read_address_list
from emails.accept.drafts import Draft
from emails.accept.rules.emails import SendInput
from emails.accept.rules.fields import is_reserved_header
from interfaces.submission.drafts import read_email
from interfaces.submission.errors import InvalidHeader
from tests.conftest import IS_LONG_RUN

# 1,000 inputs of all kinds together in the quick run.
many = settings(max_examples=1_000 if IS_LONG_RUN else 250)
ADA = Address("", "ada@example.com")
BODY = {"from": "hi@alice.example", "to": "ada@example.com", "subject": "Hello", "text": "Hi"}
FIELDS = {"from": "From", "to": "To", "subject": "Subject"}
SEND = SendInput()

# Characters of each charset.
CHARSETS = {
    "utf-8": "é日🎉ـ", "us-ascii": "a", "iso-8859-1": "éÿ¤", "iso-8859-2": "łőß", "iso-8859-7": "αώ",
    "iso-8859-15": "€œ", "windows-1250": "„ž", "windows-1251": "Яё№", "windows-1252": "“€Ÿ", "koi8-r": "Яё═",
    "iso-2022-jp": "日かア", "shift_jis": "ソ表ｱ", "euc-jp": "日ｱ", "gb2312": "中文", "gbk": "鎔中", "gb18030": "㐀😀",
    "big5": "功許", "euc-kr": "한국",
}  # fmt: skip
SPECIALS = r"()<>[]:;@\,.?=_'" + '"'
WORDS = (
    "Ada", "Demo Inc", "[Demo] Alerts", "Demo @ Home", "Demo, Inc", "Demo: Alerts", "a@b.example", "Ops (EU)",
    'A "B" C', '"Lovelace, Ada"', '"a@b.example, c"', r'"A \"B\""', "O'Neil", "Zoë", "株式会社デモ", "\u202eada",
    '5" Disk', "<b>", "a.b", "\\", "", ".", "!", "Demo; Inc",
)  # fmt: skip
SPECS = (
    "ada@example.com", "ADA@Example.COM", "ada+x@mail.example.co", '"ada"@example.com', '"ada l"@example.com', "ada",
    "ada@", "@example.com", "ada@example", "ada l@example.com", "a..b@example.com", ".a@example.com",
    "ada@bücher.example", "用户@例え.jp", "ada@[192.0.2.1]", "mailto:ada@example.com", "a@b@example.com",
    "ada@example.com.", "a@b_c.example", f"{'x' * 65}@example.com", "ada@exa mple.com", "ada@example.com,",
)  # fmt: skip
SEPARATORS = (", ", ",", "; ", " , ", ";;", ", ,")
names = st.sampled_from(WORDS) | st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=8)
specs = st.sampled_from(SPECS) | st.from_regex(r"[a-z.+]{1,4}@[a-z-]{1,4}\.(example|co)", fullmatch=True)
addresses = specs | st.builds("{} <{}>".format, st.lists(names, min_size=1, max_size=2).map(" ".join), specs)
header_names = st.from_regex(r"[A-Za-z0-9_-]{1,12}", fullmatch=True) | st.sampled_from(
    ["Comments", "Keywords", "References", "X-" + "a" * 74, "X-" + "a" * 75]
)
values = st.text(max_size=12) | st.sampled_from(["x" * 998, "x" * 999, "é" * 998, "a\u2028b", "a\x85b", "a\u202eb"])


def by_api(**body: Any) -> Draft | str:
    """Return the draft of a request to the API, or the reason of its first refused field."""
    try:
        return SEND.run_validation(BODY | body)[0]
    except ValidationError as error:
        return first_text(error.detail)


def first_text(detail: Any) -> str:
    while isinstance(detail, dict | list):
        detail = next(iter(detail.values() if isinstance(detail, dict) else detail))
    return str(detail)


def by_smtp(*fields: tuple[str, str], body: bytes = b"Hi", **replaced: str) -> Draft | str:
    """Return the draft of a submitted message, or the reason of its refusal without the name of the header."""
    shared = [(header, replaced.get(name, BODY[name])) for name, header in FIELDS.items()]
    lines = [f"{name}: {value}" for name, value in (*shared, *fields)]
    try:
        return read_email("\r\n".join([*lines, "", ""]).encode() + body, recipients=[ADA]).draft
    except InvalidHeader as refusal:
        return str(refusal).partition(": ")[2]


def content(draft: Draft) -> tuple[Any, ...]:
    return draft.sender, draft.to, draft.subject, draft.text, dict(draft.headers)


def is_header_text(text: str) -> bool:
    """Return whether a text can be the value of a header field without encoded words."""
    return text == " ".join(text.split()) and text.isprintable() | bool(FORBIDDEN.search(text)) and "=?" not in text


@many
@given(addresses, st.sampled_from(["from", "to"]))
def test_an_address_is_the_same(text, field):
    assume(is_header_text(text))
    expected, submitted = by_api(**{field: text}), by_smtp(**{field: text})
    if isinstance(expected, Draft):
        assert content(submitted) == content(expected)
    elif isinstance(submitted, Draft):
        # The API has one address in each string, and no comments.
        assert read_address_list(text).is_exact or "," in text or ";" in text
    elif "," not in text and ";" not in text:
        assert submitted == expected


@many
@given(st.lists(addresses, min_size=1, max_size=4), st.sampled_from(SEPARATORS), st.booleans())
def test_a_list_is_the_same(texts, separator, is_terminated):
    def is_in_lists(text: str) -> bool:
        # A quote without an end takes the next address; with a semicolon, a colon begins a group.
        return is_header_text(text) and text.count('"') % 2 == 0 and ":" not in text

    texts = [text for text in texts if is_in_lists(text) and isinstance(by_api(to=text), Draft)]
    assume(texts)
    submitted = by_smtp(to=separator.join(texts) + separator * is_terminated)
    assert content(submitted) == content(by_api(to=texts))


@many
@given(st.dictionaries(header_names, values, max_size=3))
def test_header_fields_are_the_same(headers):
    assume(all(map(is_header_text, headers.values())) and not any(map(is_reserved_header, headers)))
    expected, submitted = by_api(headers=headers), by_smtp(*headers.items())
    lower = [name.lower() for name in headers]
    if isinstance(expected, Draft):
        assert content(submitted) == content(expected)
    elif len({*lower}) == len(lower):
        assert submitted == expected


@many
@given(st.data(), st.sampled_from([*CHARSETS]), st.sampled_from("bq"), st.integers(1, 12))
def test_a_text_of_any_charset_is_the_same(data, charset, encoding, size):
    characters = [*CHARSETS[charset], *CHARSETS[charset], *"ab Z09", *SPECIALS]
    text = " ".join(data.draw(st.text(st.sampled_from(characters), min_size=1, max_size=40)).split())
    assume(text)
    word = encoded(text, charset, encoding, size=size)
    kind = f'text/plain; charset="{charset}"'
    submitted = by_smtp(
        ("X-Text", word), ("Content-Type", kind), ("Content-Transfer-Encoding", "8bit"),
        subject=word, to=f"{word} <ada@example.com>", body=text.encode(charset),
    )  # fmt: skip
    name = quote_name(text)
    expected = by_api(subject=text, to=f"{name} <ada@example.com>", headers={"X-Text": text}, text=text)
    if isinstance(expected, Draft):
        assert content(submitted) == content(expected)
    else:
        assert submitted == expected


def encoded(text: str, charset: str, encoding: str, *, size: int) -> str:
    """Return encoded words of a text (RFC 2047), each with a few of its characters."""
    parts = [text[start : start + size].encode(charset) for start in range(0, len(text), size)]
    if encoding == "b":
        return " ".join(f"=?{charset}?B?{base64.b64encode(part).decode()}?=" for part in parts)
    return " ".join(quoprimime.header_encode(part, charset) for part in parts)
