"""Transfer encodings (RFC 2045, section 6): their names, bodies without them, and lines that need one.

Read as mail programs read them, where the result is not in doubt, in linear time (docs/decisions/0311).
"""

import binascii
import re
from typing import NamedTuple

UNENCODED = ("7bit", "8bit", "binary")
# By alphanumeric characters alone, since programs write "8 bit", "base-64" and "quoted printable".
NAMES = {"quotedprintable": "quoted-printable", "7bits": "7bit", "8bits": "8bit"} | {
    name: name for name in ("base64", *UNENCODED)
}
COMMENT = re.compile(r"\([^()]*\)")
PADDING = re.compile(rb"=")
BASE64_CHARACTER = re.compile(rb"[A-Za-z0-9+/]")
# In a line behind a padding: it is no base64 but a text, such as a footer that a mailing list added.
NOT_IN_BASE64 = re.compile(rb"[^A-Za-z0-9+/=\s]|[A-Za-z0-9+/][ \t]++[A-Za-z0-9+/]")
NOT_BASE64 = bytes(set(range(256)) - set(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="))
# Padded sequences that are decoded: as many as 25 MiB have lines.
MAX_SEQUENCES = 512 * 1024
# White space behind the equals sign of a soft line end.
PADDED_LINE_END = re.compile(rb"=[ \t]++(?=\r?\n|\Z)")


class DecodedBase64(NamedTuple):
    """The bytes of a body.

    is_padded_within: whether base64 follows a padding.
    loss: an explanation of what is not decoded; empty if all is.
    """

    data: bytes
    is_padded_within: bool = False
    loss: str = ""


def encoding_name(value: str) -> str:
    """Return the name of the transfer encoding in a field, as RFC 2045 writes it; an unknown one as it is."""
    name = COMMENT.sub("", value).partition(";")[0].strip().lower()
    return NAMES.get("".join(filter(str.isalnum, name)), name) or "7bit"


def decode_quoted_printable(body: bytes) -> bytes:
    return binascii.a2b_qp(PADDED_LINE_END.sub(b"=", body) if b"= " in body or b"=\t" in body else body)


def decode_base64(body: bytes | memoryview) -> DecodedBase64:
    """Return a body without base64. Other characters are left out (RFC 2045, section 6.8); padding may be missing.

    Sequences behind a padding are decoded, too: some programs encode each line, or each of several files, by itself.
    """
    padding = PADDING.search(body)
    if padding is None or not BASE64_CHARACTER.search(body, padding.end()):
        return _decode_sequence(body)
    text = NOT_IN_BASE64.search(body, padding.end())
    size = max(bytes(body[: text.start()]).rfind(b"\n") + 1, padding.end()) if text else len(body)
    encoded = bytes(body[:size]).translate(None, NOT_BASE64)
    sequences = [sequence for sequence in encoded.split(b"=") if sequence]
    found = [_decode_sequence(sequence) for sequence in sequences[:MAX_SEQUENCES]]
    losses = [one.loss for one in found if one.loss]
    if len(sequences) > MAX_SEQUENCES or BASE64_CHARACTER.search(body, size):
        losses.append("Text behind the base64 of a part was left out")
    return DecodedBase64(b"".join(one.data for one in found), len(found) > 1, "".join(losses[:1]))


def _decode_sequence(body: bytes | memoryview) -> DecodedBase64:
    """Return a body up to its padding. One character more than groups of four have no byte."""
    for end, added in ((b"", 0), (b"==", 0), (b"A==", 1)):
        try:
            data = binascii.a2b_base64(b"".join((body, end)) if end else body)
        except binascii.Error:
            continue
        return DecodedBase64(data[: len(data) - added], loss="A part is not valid base64" if added else "")
    return DecodedBase64(b"", loss="A part is not valid base64")


def has_long_line(content: bytes | bytearray, limit: int) -> bool:
    """Return whether a line has more than `limit` bytes before its end.

    The search goes from line end to line end: an expression would hold the interpreter for the whole content.
    """
    start = 0
    while len(content) - start > limit:
        line_end = content.rfind(b"\n", start, start + limit + len(b"\r\n"))
        if line_end < 0:
            return True
        start = line_end + 1
    return False
