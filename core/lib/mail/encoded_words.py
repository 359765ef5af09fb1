"""Encoded words of RFC 2047: text beyond ASCII in header values, read as mail programs read them.

The standard allows neither blanks and question marks in a word nor more than 75 characters, and wants white space
around it. Many programs write other words (docs/decisions/0307).
"""

import binascii
import re

from core.lib.mail.charsets import decode_tolerantly, find_codec, from_base64

# The text of a word with Q: question marks, but none before an equals sign, and no beginning of another word.
# Atomic groups below, since Python 3.11.2 does not match possessive ones with alternatives.
Q_TEXT = r"(?:[^?=]++|\?(?!=)|=(?!\?(?!=)))"
# A question mark in front of an encoded octet is no end if an end follows.
ENCODED_WORD = re.compile(
    rf"""
    =\?(?P<charset>[^?=\s]{{1,60}}+)\?
    (?: [bB]\?(?P<b>[^?]*+) | [qQ]\?(?P<q>(?>(?:{Q_TEXT}|\?=(?=[0-9A-Fa-f]{{2}}(?>{Q_TEXT}*)\?=))*)) )
    \?=
    """,
    re.VERBOSE,
)
NOT_OCTET = re.compile(rb"=(?![0-9A-Fa-f]{2})")
NOT_BASE64 = re.compile(rb"[^A-Za-z0-9+/=]+")


def decode_words(value: str) -> str:
    """Return a header value with its encoded words decoded. Never raises; takes linear time."""
    if "\x1b" in value and value.isascii():
        # Japanese text without encoded words.
        value = decode_tolerantly(value.encode())
    return _decode_words(value) if "=?" in value else value


def _decode_words(value: str) -> str:
    """Decode words; of adjacent ones in a charset the octets are joined, since a character may be split between them.

    White space between two words is not part of the text (RFC 2047, section 6.2).
    """
    pieces: list[str] = []
    octets: list[bytes] = []
    charset, end = "", 0
    for word in ENCODED_WORD.finditer(value):
        next_charset, data = _read_word(word)
        if data is None:
            continue
        between = value[end : word.start()]
        is_adjacent = bool(octets) and not between.strip(" \t\r\n")
        if octets and not (is_adjacent and find_codec(charset) == find_codec(next_charset)):
            pieces.append(decode_tolerantly(b"".join(octets), charset))
            octets.clear()
        if not is_adjacent:
            pieces.append(between)
        octets.append(data)
        charset, end = next_charset, word.end()
    return "".join((*pieces, decode_tolerantly(b"".join(octets), charset), value[end:]))


def _read_word(word: re.Match[str]) -> tuple[str, bytes | None]:
    """Return the charset and the octets of a word; None if it is none."""
    charset, text = word["charset"], word["b"] if word["q"] is None else word["q"]
    try:
        # Characters beyond ASCII were octets of the word's charset, or of UTF-8 if windows-1252 does not have them.
        encoded = text.encode("utf-8" if find_codec(charset) in {"", "utf-8"} else "cp1252")
    except UnicodeEncodeError:
        charset, encoded = "utf-8", text.encode("utf-8", "replace")
    if word["q"] is not None:
        return charset, binascii.a2b_qp(NOT_OCTET.sub(b"=3D", encoded), header=True)
    data = b"".join(map(from_base64, NOT_BASE64.sub(b"", encoded).split(b"=")))
    return charset, data if data or not text else None
