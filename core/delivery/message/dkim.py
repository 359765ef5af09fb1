"""DKIM signatures (RFC 6376, RFC 8301): rsa-sha256 over relaxed headers and a relaxed body, no length tag.

Every structural header is signed once more than it occurs, so that none can be added in transit: a second
From, a Sender or another List-Unsubscribe breaks the signature.
"""

import base64
import functools
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_der_public_key

# Excludes Return-Path, Received and Bcc, which other hosts write or remove.
SIGNED = (
    "from", "sender", "reply-to", "to", "cc", "subject", "date", "message-id", "in-reply-to", "references",
    "mime-version", "content-type", "content-transfer-encoding", "list-unsubscribe", "list-unsubscribe-post",
    "list-id", "feedback-id", "auto-submitted", "importance", "disposition-notification-to",
)  # fmt: skip
HEADER_END = re.compile(rb"\r\n(?![ \t])")
# Single spaces need no replacement: matching only longer runs is three times faster.
BLANKS = re.compile(rb"  +")
WHITE_SPACE = b" \t\r\n"
LINE = 72
# A body is hashed in chunks, to avoid two more copies of a large one.
CHUNK_BYTES = 1024 * 1024
# The only algorithm that sign() uses, and so the only one that verify() accepts.
ALGORITHM = {"v": "1", "a": "rsa-sha256", "c": "relaxed/relaxed"}
SIGNATURE_VALUE = re.compile(rb"(;\s*b\s*=)[^;]*")
MAX_SIGNATURES = 5


@dataclass(frozen=True)
class SigningKey:
    """The key that a domain publishes under its selector."""

    domain: str
    selector: str
    private: RSAPrivateKey


def sign(message: bytes, *, key: SigningKey, at: datetime | None = None) -> bytes:
    """Return the message with a DKIM-Signature prepended. The message must be complete, with CRLF line ends.

    at: the signature time, by default now. The same message signed at the same time gives the same bytes.
    """
    end_of_head = message.index(b"\r\n\r\n")
    head = message[:end_of_head]
    headers = _headers(head)
    names, folded_names = _signed_names(tuple([len(headers.get(name, ())) for name in SIGNED]))
    unsigned = "\r\n ".join(
        (
            "DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed;",
            f"d={key.domain}; s={key.selector}; t={int((at or datetime.now(UTC)).timestamp())};",
            f"h={folded_names};",
            f"bh={_body_hash(message, start=end_of_head + 4)};",
            "b=",
        )
    ).encode("ascii")
    data = _signed_data(headers, names, unsigned=unsigned.partition(b":")[2])
    signature = base64.b64encode(key.private.sign(data, PKCS1v15(), SHA256())).decode()
    return b"".join((unsigned, _folded(signature).encode(), b"\r\n", message))


def verify(message: bytes, *, domain: str, public_keys: Mapping[str, str]) -> bool:
    """Return whether a message has a valid signature of sign() by a domain, covering its Message-ID.

    public_keys: by selector, DER in base64, as in the DNS record. The message must have CRLF line ends.
    """
    head = message.partition(b"\r\n\r\n")[0]
    values = _headers(head).get("dkim-signature", [])[:MAX_SIGNATURES]
    return any(_is_valid(message, value, domain=domain, public_keys=public_keys) for value in values)


def _is_valid(message: bytes, value: bytes, *, domain: str, public_keys: Mapping[str, str]) -> bool:
    tags = {
        name.strip(): "".join(tag.split())
        for name, _, tag in (part.partition("=") for part in value.decode("latin-1").split(";"))
    }
    names = tags.get("h", "").lower().split(":")
    is_ours = ALGORITHM.items() <= tags.items() and "l" not in tags and tags.get("d") == domain
    if not is_ours or not {"from", "message-id"} <= set(names) or tags.get("s") not in public_keys:
        return False
    head, _, _ = message.partition(b"\r\n\r\n")
    if tags.get("bh") != _body_hash(message, start=len(head) + 4):
        return False
    data = _signed_data(_headers(head), names, unsigned=SIGNATURE_VALUE.sub(rb"\1", value))
    try:
        key = load_der_public_key(base64.b64decode(public_keys[tags["s"]]))
        assert isinstance(key, RSAPublicKey)
        key.verify(base64.b64decode(tags.get("b", "")), data, PKCS1v15(), SHA256())
    except (InvalidSignature, ValueError):
        return False
    return True


# All messages of a template have the same headers.
@functools.lru_cache(maxsize=256)
def _signed_names(counts: tuple[int, ...]) -> tuple[Sequence[str], str]:
    """Return the names to sign, and the same names folded. counts: how often each name of SIGNED occurs."""
    names = [name for name, count in zip(SIGNED, counts, strict=True) for _ in range(count + 1)]
    return names, _folded(":".join(names), ":")


def _signed_data(headers: dict[str, list[bytes]], names: Sequence[str], *, unsigned: bytes) -> bytes:
    """Return the bytes that a signature signs: the named headers, and the signature's own header without its value.

    Removes the named headers from `headers`.
    """
    # The last occurrence of a header is signed first (section 5.4.2); a missing header adds nothing.
    signed = [_canonical(name, headers[name].pop()) for name in names if headers.get(name)]
    # The signature header itself is signed too, with an empty b= and no line end (section 3.7).
    return b"".join(signed) + _canonical("dkim-signature", unsigned).removesuffix(b"\r\n")


def _headers(head: bytes) -> dict[str, list[bytes]]:
    """Return the raw values of all headers, by lower-case name, in order."""
    found: dict[str, list[bytes]] = {}
    for header in HEADER_END.split(head):
        name, _, value = header.partition(b":")
        found.setdefault(name.decode("latin-1").strip().lower(), []).append(value)
    return found


def _canonical(name: str, value: bytes) -> bytes:
    """Return the relaxed form of a header (section 3.4.2): unfolded, each run of white space one space."""
    return b"%s:%s\r\n" % (name.encode(), b" ".join(value.split()))


def _body_hash(message: bytes, *, start: int) -> str:
    """Return the hash of the relaxed body (section 3.4.4), without empty lines at the end."""
    digest = hashlib.sha256()
    end = _end_of_text(message, start)
    while start < end:
        # A chunk ends at a line end. A line may exceed a chunk, though compose() makes none above 998 bytes.
        cut = message.find(b"\n", start + CHUNK_BYTES, end) + 1 or end
        digest.update(_relaxed(message[start:cut]))
        start = cut
        if start == end:
            digest.update(b"\r\n")
    return base64.b64encode(digest.digest()).decode()


def _end_of_text(message: bytes, start: int) -> int:
    """Return the end of the last non-empty line, without trailing white space and line end."""
    end = len(message)
    while end > start:
        begin = max(start, end - CHUNK_BYTES)
        text = message[begin:end].rstrip(WHITE_SPACE)
        if text:
            return begin + len(text)
        end = begin
    return end


def _relaxed(lines: bytes) -> bytes:
    return BLANKS.sub(b" ", lines.replace(b"\t", b" ")).replace(b" \r\n", b"\r\n")


def _folded(text: str, after: str = "") -> str:
    """Fold a long value into lines, anywhere or only after the given character."""
    lines, rest = [], text
    while len(rest) > LINE:
        end = rest.rfind(after, 0, LINE) + 1 if after else LINE
        lines.append(rest[:end])
        rest = rest[end:]
    return "\r\n ".join([*lines, rest])
