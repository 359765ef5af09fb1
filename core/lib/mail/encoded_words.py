"""Encoded words of RFC 2047: text beyond ASCII in header values."""

import base64
import binascii
import re
from itertools import groupby

from core.lib.mail.charsets import decode_tolerantly, find_codec

ENCODED_WORD = re.compile(r"=\?([A-Za-z0-9_.:-]{1,40})(?:\*[A-Za-z-]{1,20})?\?([bBqQ])\?([^? \r\n]{0,1000})\?=")
# White space between two encoded words is not part of the text (RFC 2047, section 6.2).
WORDS = re.compile(rf"{ENCODED_WORD.pattern}(?:[ \t]{{1,80}}{ENCODED_WORD.pattern})*")


def decode_words(value: str) -> str:
    """Return a header value with its encoded words decoded. Never raises; takes linear time."""
    return WORDS.sub(_decoded_run, value) if "=?" in value else value


def _decoded_run(run: re.Match[str]) -> str:
    """Decode adjacent words: many programs split a character of several bytes between two words of one charset."""
    words = ((charset, _octets(kind, text)) for charset, kind, text in ENCODED_WORD.findall(run[0]))
    runs = (list(group) for _, group in groupby(words, key=lambda word: find_codec(word[0])))
    return "".join(decode_tolerantly(b"".join(octets for _, octets in group), group[0][0]) for group in runs)


def _octets(kind: str, text: str) -> bytes:
    data = text.encode("utf-8", "replace")
    if kind in "qQ":
        return binascii.a2b_qp(data, header=True)
    try:
        return base64.b64decode(data + b"=" * (-len(data) % 4))
    except (binascii.Error, ValueError):
        return data
