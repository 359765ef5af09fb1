"""Header fields."""

import pytest

from core.delivery.message.errors import UnsafeHeader
from core.delivery.message.headers import encoded_address, header_with_parameters, text_header
from tests.rows import each

LONG_ID = "<" + "A" * 90 + "@prod.example>"


@each("name", ["References", "in-reply-to"])
def test_message_ids_are_folded_between_ids_and_never_encoded(name):
    lines = text_header(name, f"{LONG_ID}  <b@c.example> {LONG_ID}").split("\r\n ")
    assert lines == [f"{name}: {LONG_ID}", "<b@c.example>", LONG_ID]


def test_a_value_that_is_not_a_list_of_ids_is_encoded_as_text():
    assert text_header("References", "é") == "References: =?utf-8?b?w6k=?="


def test_an_empty_value_has_no_trailing_space():
    assert text_header("Subject", "") == "Subject:"


@each("value", ["a/b\r\nX: y", "a/é", "a/b\x7f"])
def test_parameters_are_printable_ascii(value):
    with pytest.raises(UnsafeHeader):
        header_with_parameters("Content-Type", value)


LONG_NAME = "The Customer Success and Wellbeing Team at Example & Company"


@each(("name", "phrase"), [
    (LONG_NAME, LONG_NAME),
    (f"{LONG_NAME}, Inc.", f'"{LONG_NAME},\r\n Inc."'),
    ("Alice  Blank", '"Alice  Blank"'),
    ('A "B" C', '"A \\"B\\" C"'),
])  # fmt: skip
def test_an_ascii_name_is_not_encoded(name, phrase):
    assert encoded_address(name, "a@b.example").replace("\r\n <", " <") == f"{phrase} <a@b.example>"


@each("name", ["x" * 80, "a  b" * 12, "=?utf-8?q?x?=", '"' * 60, '"' * 39])
def test_an_ascii_name_that_cannot_be_folded_is_encoded(name):
    assert encoded_address(name, "a@b.example").startswith("=?utf-8?b?")


def test_double_spaces_are_kept_without_folding():
    assert text_header("Subject", "Hello  you") == "Subject: Hello  you"
    assert text_header("Subject", "Hello  you " + "x" * 60).startswith("Subject: =?utf-8?b?")
