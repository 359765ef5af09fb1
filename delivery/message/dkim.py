"""DKIM signatures (RFC 6376, RFC 8301): rsa-sha256 over relaxed headers and a relaxed body, no length tag.

Every structural header is signed once more than it occurs, so that none can be added on the way: a second
From, a Sender, another List-Unsubscribe break the signature.
"""

import base64
import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.hashes import SHA256

# Return-Path, Received and Bcc are others' to write.
SIGNED = (
    "from", "sender", "reply-to", "to", "cc", "subject", "date", "message-id", "in-reply-to", "references",
    "mime-version", "content-type", "content-transfer-encoding", "list-unsubscribe", "list-unsubscribe-post",
    "feedback-id", "auto-submitted",
)  # fmt: skip
HEADER_END = re.compile(rb"\r\n(?![ \t])")
# Single blanks stay as they are: matching only longer runs is three times faster.
BLANKS = re.compile(rb"  +")
WHITE = b" \t\r\n"
LINE = 72
# A body is hashed in pieces, so that a large one is not held a second and a third time.
PIECE_BYTES = 1024 * 1024


@dataclass(frozen=True)
class SigningKey:
    """The key that a domain publishes under its selector."""

    domain: str
    selector: str
    private: RSAPrivateKey


def sign(message: bytes, *, key: SigningKey, at: datetime | None = None) -> bytes:
    """Return the message with a DKIM-Signature in front. It must be whole, with CRLF line ends.

    The same message signed `at` the same time has the same bytes; without it the time is now.
    """
    end_of_head = message.index(b"\r\n\r\n")
    headers = _headers(message[:end_of_head])
    names = [name for name in SIGNED for _ in range(len(headers.get(name, ())) + 1)]
    unsigned = "\r\n ".join(
        (
            "DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed;",
            f"d={key.domain}; s={key.selector}; t={int((at or datetime.now(UTC)).timestamp())};",
            f"h={_folded(':'.join(names), ':')};",
            f"bh={_body_hash(message, start=end_of_head + 4)};",
            "b=",
        )
    ).encode("ascii")
    # The last occurrence of a header is signed first (section 5.4.2); one that is not there adds nothing.
    signed = [_canonical(name, headers[name].pop()) for name in names if headers.get(name)]
    # The signature itself is signed too, its b= empty, and without a line end (section 3.7).
    data = b"".join(signed) + _canonical("dkim-signature", unsigned.partition(b":")[2]).removesuffix(b"\r\n")
    signature = base64.b64encode(key.private.sign(data, PKCS1v15(), SHA256())).decode()
    return b"".join((unsigned, _folded(signature).encode(), b"\r\n", message))


def _headers(head: bytes) -> dict[str, list[bytes]]:
    """Return the raw values of the headers to be signed, by lower-case name, in order."""
    found: dict[str, list[bytes]] = {}
    for header in HEADER_END.split(head):
        name, _, value = header.partition(b":")
        found.setdefault(name.decode("ascii").strip().lower(), []).append(value)
    return found


def _canonical(name: str, value: bytes) -> bytes:
    """Return the relaxed form of a header (section 3.4.2): unfolded, each run of blanks one blank."""
    return b"%s:%s\r\n" % (name.encode(), b" ".join(value.split()))


def _body_hash(message: bytes, *, start: int) -> str:
    """Return the hash of the relaxed body (section 3.4.4): empty lines at the end do not count."""
    digest = hashlib.sha256()
    end = _end_of_text(message, start)
    while start < end:
        # A piece ends with a line. One line may be longer than a piece; compose() makes none of more than 998.
        cut = message.find(b"\n", start + PIECE_BYTES, end) + 1 or end
        digest.update(_relaxed(message[start:cut]))
        start = cut
        if start == end:
            digest.update(b"\r\n")
    return base64.b64encode(digest.digest()).decode()


def _end_of_text(message: bytes, start: int) -> int:
    """Return where the last line that is not empty ends, without its blanks and its line end."""
    end = len(message)
    while end > start:
        begin = max(start, end - PIECE_BYTES)
        text = message[begin:end].rstrip(WHITE)
        if text:
            return begin + len(text)
        end = begin
    return end


def _relaxed(lines: bytes) -> bytes:
    return BLANKS.sub(b" ", lines.replace(b"\t", b" ")).replace(b" \r\n", b"\r\n")


def _folded(text: str, after: str = "") -> str:
    """Break a long value into lines, anywhere or only behind a character."""
    lines, rest = [], text
    while len(rest) > LINE:
        end = rest.rfind(after, 0, LINE) + 1 if after else LINE
        lines.append(rest[:end])
        rest = rest[end:]
    return "\r\n ".join([*lines, rest])
