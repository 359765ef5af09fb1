"""Encoded bodies: 7 bits, short lines, and a lossless round trip."""

import base64
import quopri
import re

from hypothesis import example, given
from hypothesis import strategies as st

from core.delivery.message.encoding import encode_bytes, encode_text
from tests.rows import each

DECODE = {"base64": base64.b64decode, "quoted-printable": quopri.decodestring}
PIECES = st.sampled_from(["a", "aaaaaaaaaa", " ", "\t", ".", "=", "=_", "From ", "é", "😀", "\n", "\r", "\r\n", "\x00"])
TEXTS = st.lists(PIECES, max_size=60).map("".join)


def encoded(text: str) -> tuple[str, bytes]:
    name, pieces = encode_text(text)
    return name, b"".join(pieces)


@given(TEXTS)
@example("a" * 75 + " \nb")
@example("a" * 74 + "\t\nb")
@example("é" + "a" * 60 + "\nFrom " + "b" * 71 + "\nFrom")
@example(".")
@example("a\n.\n..\n")
def test_text_round_trips_in_safe_lines(text):
    name, lines = encoded(text)
    assert DECODE[name](lines).decode() == re.sub("\r\n|\r|\n", "\r\n", text)
    assert lines.isascii()
    for line in lines.split(b"\r\n"):
        assert len(line) <= 76
        assert not re.search(rb"[\r\n]|^From |^\.$|[ \t]$", line)


@given(TEXTS)
def test_encoded_text_cannot_contain_a_boundary(text):
    assert b"=_" not in encoded(text)[1]


@each(("text", "name"), [
    ("Hello", "quoted-printable"), ("", "quoted-printable"), ("=" * 1000, "quoted-printable"),
    ("Grüße aus Köln, und nichts als das zu berichten", "quoted-printable"), ("こんにちは", "base64"),
    ("Привет", "base64"), ("a" * 40 + "=" * 10 + "é", "base64"),
])  # fmt: skip
def test_ascii_is_quoted_printable_and_other_text_the_shorter_encoding(text, name):
    assert encoded(text)[0] == name


@each("size", [0, 1, 56, 57, 58, 57 * 1024 - 1, 57 * 1024, 57 * 1024 + 1, 200_000])
def test_bytes_round_trip_in_full_lines(size):
    data = (bytes(range(256)) * (size // 256 + 1))[:size]
    lines = b"".join(encode_bytes(data))
    assert base64.b64decode(lines) == data
    *full, last = lines.split(b"\r\n")
    assert {len(line) for line in full} <= {76}
    assert len(last) <= 76
