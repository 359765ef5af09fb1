"""Address parsing: the fast regular expression agrees with email_validator."""

import contextlib
import time

import email_validator
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.lib import email_addresses
from core.lib.email_addresses import (
    PLAIN,
    InvalidAddress,
    normalize_address,
    normalize_search,
    parse_address,
    parse_address_list,
    parse_recipient,
    quote_name,
    read_stored_address,
    split_address_list,
)
from tests.rows import each

LOCAL = st.text(alphabet="abzAZ09!#$%&'*+/=?^_`{|}~-.", min_size=1, max_size=70)
DOMAIN = st.text(alphabet="abzAZ09-.", min_size=1, max_size=80)
TLD = st.sampled_from(["com", "example", "test", "local", "invalid", "c", "museum", "x1"])


def parse_with_library(text: str) -> str | None:
    try:
        validated = email_validator.validate_email(text, **email_addresses.VALIDATOR_OPTIONS)
    except email_validator.EmailNotValidError:
        return None
    domain = (validated.ascii_domain or validated.domain).lower()
    return f"{validated.local_part}@{domain}" if "." in domain else None


def parse_ours(text: str) -> str | None:
    try:
        return parse_address(text).spec
    except InvalidAddress:
        return None


@given(LOCAL, DOMAIN, TLD)
def test_the_regular_expression_and_the_library_agree(local, domain, tld):
    text = f"{local}@{domain}.{tld}"
    assert parse_ours(text) == parse_with_library(text)


@each("text", [
        "ada@example.com", "a.b+c@mail.example.co", "x" * 64 + "@example.com", "x" * 65 + "@example.com", ".a@b.co",
        "a.@b.co", "a..b@b.co", "a@-b.co", "a@b-.co", "a@" + "b" * 63 + ".co", "a@" + "b" * 64 + ".co",
        "a@xn--bcher-kva.example", "a@b.invalid", "a@b.local", "a@b.test", "a@test", "a@" + "b." * 126 + "co",
        "ADA@EXAMPLE.COM", "a@b_c.co",
    ])  # fmt: skip
def test_they_agree_at_the_edges(text):
    assert parse_ours(text) == parse_with_library(text)


def test_a_hostile_text_is_refused_in_linear_time():
    started = time.perf_counter()
    for text in ("a." * 250, "a" * 500, "a@" + "a-" * 250, "a@" + "a." * 250, "!" * 64 + "@" + "a" * 440):
        parse_ours(text)
        PLAIN.fullmatch(text * 100)
    assert time.perf_counter() - started < 0.5


@given(st.lists(st.tuples(st.text(max_size=20), st.sampled_from(["a@example.com", "b.c@example.org"])), max_size=5))
def test_a_list_round_trips_through_parsing(pairs):
    addresses = []
    for name, spec in pairs:
        with contextlib.suppress(InvalidAddress):
            addresses.append(parse_address(f"{quote_name(name)} <{spec}>"))
    assert parse_address_list(", ".join(map(str, addresses))) == addresses
    assert [read_stored_address(str(address)) for address in addresses] == addresses


@each(("text", "addresses"), [
    ("a@example.com,b@example.com", ["a@example.com", "b@example.com"]),
    (" , a@example.com; b@example.com ;,", ["a@example.com", "b@example.com"]),
    ("Lovelace, Ada <a@example.com>, B; L <b@example.com>", ["Lovelace, Ada <a@example.com>", "B; L <b@example.com>"]),
    ('"L, A" <a@example.com>;"B;" <b@example.com>', ['"L, A" <a@example.com>', '"B;" <b@example.com>']),
    ("root, a@example.com, B", ["root", "a@example.com", "B"]),
    ("a@example.com, , Ada <b@example.com>", ["a@example.com", "Ada <b@example.com>"]),
    (" ;, ", []),
])  # fmt: skip
def test_a_list_is_split_between_addresses_only(text, addresses):
    assert split_address_list(text) == addresses


def test_two_addresses_with_quoted_names_are_not_one():
    with pytest.raises(InvalidAddress, match="several addresses"):
        parse_address('"L, A" <a@example.com>, "B" <b@example.com>')


@each(("text", "address"), [
    ('"ada"@example.com', "ada@example.com"), ('Ada <"a.\\l"@example.com>', "Ada <a.l@example.com>"),
    ('"ada l"@example.com', None), ('Ada <"a@b"@example.com>', None), ('""@example.com', None),
])  # fmt: skip
def test_quotes_that_a_local_part_does_not_need_are_removed(text, address):
    if address:
        assert str(parse_recipient(text)) == address
    else:
        with pytest.raises(InvalidAddress, match="is not an email address"):
            parse_recipient(text)


@each("text", ['"a, b@example.com', "a@example.com b@example.com", "a@example.com,\\"])
def test_a_list_with_an_invalid_item_is_refused(text):
    with pytest.raises(InvalidAddress):
        parse_address_list(text)


def test_a_hostile_list_is_read_in_linear_time():
    started = time.perf_counter()
    for text in ('"' * 200_001, "\\" * 200_001, '"a\\' * 100_000, "<" * 200_000, '",' * 100_001):
        with contextlib.suppress(InvalidAddress):
            parse_address_list(text)
    assert time.perf_counter() - started < 2


INTERNATIONAL = "\u7528\u6237@xn--r8jz45g.jp"


@each(("text", "spec"), [
    ("\u7528\u6237@\u4f8b\u3048.jp", INTERNATIONAL),
    ("\u7528\u6237 <\u7528\u6237@\u4f8b\u3048\u3002jp>".replace("\u3002", "."), INTERNATIONAL),
    ("\u7528\u6237@XN--R8JZ45G.jp", INTERNATIONAL),
    ("jo\u0308rg@example.com", "j\u00f6rg@example.com"),
    ("ada@\u4f8b\u3048.jp", "ada@xn--r8jz45g.jp"),
])  # fmt: skip
def test_a_recipient_has_one_form_for_all_spellings(text, spec):
    assert parse_recipient(text).spec == spec


@each("text", ["\u7528" * 22 + "@example.com", "\u7528 \u6237@example.com", "\u202ea@example.com"])
def test_an_invalid_international_address_is_refused(text):
    with pytest.raises(InvalidAddress):
        parse_recipient(text)


def test_only_recipients_may_be_international():
    with pytest.raises(InvalidAddress, match="only recipients"):
        parse_address("\u7528\u6237@example.com")


def test_addresses_are_compared_without_case_in_every_script():
    assert normalize_address("J\u00d6RG@example.com") == normalize_address("j\u00f6rg@example.com")


@each("text", ["\u7528\u6237@\u4f8b\u3048.jp", INTERNATIONAL, "\u6237@xn--", "\u7528"])
def test_a_search_finds_the_stored_form(text):
    assert normalize_search(text) in normalize_address(INTERNATIONAL)
