"""DKIM signatures (RFC 6376, RFC 8301): rsa-sha256 over relaxed headers and a relaxed body, no length tag.

Every structural header is signed once more than it occurs, so that none can be added on the way: a second
From, a Sender, another List-Unsubscribe break the signature.
"""

import base64
import hashlib
import re
import time
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.hashes import SHA256

# Return-Path, Received and Bcc are others' to write.
SIGNED = (
    "from", "sender", "reply-to", "to", "cc", "subject", "date", "message-id", "in-reply-to", "references",
    "mime-version", "content-type", "content-transfer-encoding", "list-unsubscribe", "list-unsubscribe-post",
    "feedback-id", "auto-submitted",
)  # fmt: skip
BLANKS = re.compile(rb"[ \t]+")
BLANKS_AT_END = re.compile(rb"[ \t]+(?=\r\n)")
LINE = 72


@dataclass(frozen=True)
class SigningKey:
    """The key that a domain publishes under its selector."""

    domain: str
    selector: str
    private: RSAPrivateKey


def sign(message: bytes, *, key: SigningKey) -> bytes:
    """Return the message with a DKIM-Signature in front. It must be whole, with CRLF line ends."""
    head, _, body = message.partition(b"\r\n\r\n")
    headers = _canonical_headers(head)
    names = [name for name in SIGNED for _ in range(len(headers.get(name, [])) + 1)]
    body_hash = base64.b64encode(hashlib.sha256(_canonical_body(body)).digest()).decode()
    unsigned = "\r\n ".join(
        (
            "DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed;",
            f"d={key.domain}; s={key.selector}; t={int(time.time())};",
            f"h={_folded(':'.join(names), ':')};",
            f"bh={body_hash};",
            "b=",
        )
    )
    # The last occurrence of a header is signed first (section 5.4.2); one that is not there adds nothing.
    signed = [headers[name].pop() for name in names if headers.get(name)]
    data = b"".join(signed) + _canonical_header(unsigned.encode())[1].removesuffix(b"\r\n")
    signature = base64.b64encode(key.private.sign(data, PKCS1v15(), SHA256())).decode()
    return f"{unsigned}{_folded(signature)}\r\n".encode() + message


def _canonical_headers(head: bytes) -> dict[str, list[bytes]]:
    """Return the relaxed form of each header (section 3.4.2), by lower-case name, in order."""
    found: dict[str, list[bytes]] = {}
    for raw in re.split(rb"\r\n(?![ \t])", head):
        name, canonical = _canonical_header(raw)
        found.setdefault(name, []).append(canonical)
    return found


def _canonical_header(raw: bytes) -> tuple[str, bytes]:
    name, _, value = raw.partition(b":")
    lower = name.strip().lower()
    return lower.decode("ascii"), lower + b":" + BLANKS.sub(b" ", value.replace(b"\r\n", b"")).strip(b" ") + b"\r\n"


def _canonical_body(body: bytes) -> bytes:
    """Return the relaxed form of a body (section 3.4.4): an empty one stays empty."""
    canonical = BLANKS_AT_END.sub(b"", BLANKS.sub(b" ", body)).rstrip(b"\r\n")
    return canonical + b"\r\n" if canonical else b""


def _folded(text: str, after: str = "") -> str:
    """Break a long value into lines, anywhere or only behind a character."""
    lines, rest = [], text
    while len(rest) > LINE:
        end = rest.rfind(after, 0, LINE) + 1 if after else LINE
        lines.append(rest[:end])
        rest = rest[end:]
    return "\r\n ".join([*lines, rest])
