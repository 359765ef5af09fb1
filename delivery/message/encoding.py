"""Content-Transfer-Encodings (RFC 2045, section 6): a body in 7 bits, in lines of at most 76 characters.

docs/decisions/0017 says which encoding a text gets, and what it costs.
"""

import binascii
import re
from collections.abc import Iterator

# 57 bytes make a line of 76 characters; a thousand lines at a time keep a large file from being held twice.
LINE = 76
LINES_AT_ONCE = 1024
BYTES_AT_ONCE = 57 * LINES_AT_ONCE
# A byte that needs "=XX" adds two; base64 adds a third to every byte.
QUOTED_BYTES_MOST = 1 / 6
# The standard library escapes a blank at the end of a line without asking whether the line has room for it.
TOO_LONG = re.compile(rb"^(.{74,75})(=20|=09)$", re.MULTILINE)
# Mail stores put ">" in front of a line that begins so, and break the signature.
FROM = re.compile(rb"^From ", re.MULTILINE)


def encode_text(text: str) -> tuple[str, Iterator[bytes]]:
    """Return the name of the encoding and the encoded pieces of a text, in UTF-8 with CRLF line ends."""
    data = text.encode()
    lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data
    if _is_mostly_ascii(text, data):
        return "quoted-printable", iter((_quoted_printable(lines),))
    return "base64", encode_bytes(lines.replace(b"\n", b"\r\n"))


def encode_bytes(data: bytes) -> Iterator[bytes]:
    """Yield base64, a thousand lines at a time; no line end after the last."""
    for start in range(0, len(data), BYTES_AT_ONCE):
        encoded = binascii.b2a_base64(data[start : start + BYTES_AT_ONCE], newline=False)
        yield b"\r\n" if start else b""
        yield b"\r\n".join([encoded[at : at + LINE] for at in range(0, len(encoded), LINE)])


def _is_mostly_ascii(text: str, data: bytes) -> bool:
    """Guess at no cost: a character beyond ASCII has at most twice as many bytes as it has bytes more than one."""
    if text.isascii():
        # Spam filters mistrust plain ASCII in base64 (Rspamd: MIME_BASE64_TEXT_BOGUS).
        return True
    quoted = 2 * (len(data) - len(text)) + data.count(b"=")
    return quoted < len(data) * QUOTED_BYTES_MOST


def _quoted_printable(lines: bytes) -> bytes:
    encoded = binascii.b2a_qp(lines)
    if b"=20\n" in encoded or (b"\t" in lines and b"=09\n" in encoded):
        encoded = TOO_LONG.sub(rb"\1=\n\2", encoded)
    if b"From " in encoded:
        # A soft break, since the line may have no room for two characters more.
        encoded = FROM.sub(b"=46=\nrom ", encoded)
    return encoded.replace(b"\n", b"\r\n")
