"""Header lines as single functions write them."""

import pytest

from delivery.errors import UnsafeHeader
from delivery.headers import parameterised, text_header

LONG_ID = "<" + "A" * 90 + "@prod.example>"


@pytest.mark.parametrize("name", ["References", "in-reply-to"])
def test_message_ids_are_folded_between_and_never_encoded(name):
    lines = text_header(name, f"{LONG_ID}  <b@c.example> {LONG_ID}").split("\r\n ")
    assert lines == [f"{name}: {LONG_ID}", "<b@c.example>", LONG_ID]


def test_what_is_no_list_of_ids_is_encoded_like_any_text():
    assert text_header("References", "é") == "References: =?utf-8?b?w6k=?="


def test_an_empty_value_leaves_no_blank_behind():
    assert text_header("Subject", "") == "Subject:"


@pytest.mark.parametrize("value", ["a/b\r\nX: y", "a/é", "a/b\x7f"])
def test_parameters_are_printable_ascii(value):
    with pytest.raises(UnsafeHeader):
        parameterised("Content-Type", value)
