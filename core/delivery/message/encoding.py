"""Content-Transfer-Encodings (RFC 2045, section 6): bodies in 7 bits, in lines of at most 76 characters.

docs/decisions/0017 explains the choice of encoding and its cost.
"""

import binascii
import re
from collections.abc import Iterator

# 57 bytes make a line of 76 characters. Encoding a thousand lines at a time avoids a second copy of a large file.
LINE = 76
LINES_AT_ONCE = 1024
BYTES_AT_ONCE = 57 * LINES_AT_ONCE
# Quoted-printable adds two bytes for each "=XX"; base64 adds a third to every byte.
QUOTED_BYTES_MOST = 1 / 6
# The standard library escapes a space or tab at the end of a line without checking the line length.
TOO_LONG = re.compile(rb"^(.{74,75})(=20|=09)$", re.MULTILINE)
# Mail stores prepend ">" to a line that begins with this, which breaks the signature.
FROM = re.compile(rb"^From ", re.MULTILINE)


def encode_text(text: str) -> tuple[str, Iterator[bytes]]:
    """Return the encoding's name and the encoded chunks of a text, in UTF-8 with CRLF line ends."""
    data = text.encode()
    lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data
    if _is_mostly_ascii(text, data):
        return "quoted-printable", iter((_quoted_printable(lines),))
    return "base64", encode_bytes(lines.replace(b"\n", b"\r\n"))


def encode_bytes(data: bytes) -> Iterator[bytes]:
    """Yield base64, a thousand lines at a time, without a line end after the last."""
    for start in range(0, len(data), BYTES_AT_ONCE):
        encoded = binascii.b2a_base64(data[start : start + BYTES_AT_ONCE], newline=False)
        yield b"\r\n" if start else b""
        yield b"\r\n".join([encoded[at : at + LINE] for at in range(0, len(encoded), LINE)])


def _is_mostly_ascii(text: str, data: bytes) -> bool:
    """Estimate cheaply: a non-ASCII character of n bytes has n - 1 extra bytes, and n is at most twice that."""
    if text.isascii():
        # Spam filters penalise plain ASCII in base64 (Rspamd: MIME_BASE64_TEXT_BOGUS).
        return True
    quoted = 2 * (len(data) - len(text)) + data.count(b"=")
    return quoted < len(data) * QUOTED_BYTES_MOST


def _quoted_printable(lines: bytes) -> bytes:
    encoded = binascii.b2a_qp(lines)
    if b"=20\n" in encoded or (b"\t" in lines and b"=09\n" in encoded):
        encoded = TOO_LONG.sub(rb"\1=\n\2", encoded)
    if b"From " in encoded:
        # A soft line break, since two more characters may not fit on the line.
        encoded = FROM.sub(b"=46=\nrom ", encoded)
    return encoded.replace(b"\n", b"\r\n")
