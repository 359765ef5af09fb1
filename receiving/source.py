"""The source of received messages as it is shown: our fields in front, forged ones removed, attachments decoded."""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any

from django.conf import settings

from lib.mail.mime import MimePolicy, decode_base64
from receiving import content
from receiving.models import Message

# The header is read as a whole, to find forged fields in it.
MAX_HEADER_BYTES = 1024 * 1024
END_OF_HEADER = re.compile(rb"\r?\n\r?\n")
FIELD = re.compile(rb"(?:[^\r\n]|\r?\n[ \t])*(?:\r?\n|\Z)")
# Images that a message shows in its text: of these types, as often as they appear in the HTML.
INLINE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
INLINE_BYTES = 5 * 1024 * 1024
# A domain name or selector. Values of a sender are shown only as they are.
TOKEN = re.compile(r"[A-Za-z0-9._-]{1,255}")
COMMENT = re.compile(r"\((?:[^()\\]|\\.)*\)")


def authserv_id() -> str:
    """Return our name in Authentication-Results (RFC 8601, section 2.5)."""
    return str(settings.EHLO_NAME).lower()


def read_source(message: Message) -> Iterator[bytes]:
    """Yield the source of a message: our Received and Authentication-Results, then what was received."""
    yield (message.trace + authentication_results(message)).encode()
    head = content.open_range(message.content_id, 0, min(message.size, MAX_HEADER_BYTES))
    end = END_OF_HEADER.search(head)
    header_end = end.end() if end else len(head)
    yield without_forged_results(head[:header_end])
    yield head[header_end:]
    yield from content.read_pieces(message.content_id, start=len(head), end=message.size)


def read_attachment(message: Message, entry: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield the decoded bytes of an attachment. entry: of Message.attachments."""
    body = content.open_range(message.content_id, entry["start"], entry["end"])
    yield decode_part(body, entry["encoding"])


def html_with_images(message: Message) -> str:
    """Return the HTML with the images that it shows by `cid:`, as far as they fit into INLINE_BYTES."""
    html, left = message.html, INLINE_BYTES
    for entry in message.attachments:
        reference = f"cid:{entry['contentId']}"
        size = entry["size"] * html.count(reference) * 4 // 3
        if not entry["contentId"] or entry["contentType"] not in INLINE_TYPES or not 0 < size <= left:
            continue
        data = base64.b64encode(b"".join(read_attachment(message, entry))).decode()
        html, left = html.replace(reference, f"data:{entry['contentType']};base64,{data}"), left - size
    return html


def decode_part(body: bytes, encoding: str) -> bytes:
    """Return a body without its transfer encoding; of broken base64 what can be read."""
    if encoding == "quoted-printable":
        return binascii.a2b_qp(body)
    if encoding == "base64":
        return decode_base64(body, MimePolicy())
    return body


def without_forged_results(header: bytes) -> bytes:
    """Return a header without Authentication-Results that claim to be ours (RFC 8601, section 5)."""
    if b"authentication-results" not in header.lower():
        return header
    return b"".join(field for field in FIELD.findall(header) if not _is_forged(field))


def _is_forged(field: bytes) -> bool:
    name, _, value = field.partition(b":")
    if name.strip().lower() != b"authentication-results":
        return False
    text = value.decode("latin-1")
    while (plain := COMMENT.sub(" ", text)) != text:
        text = plain
    claimed = text.partition(";")[0].strip().strip('"').split()
    return bool(claimed) and claimed[0].strip('"').lower().rstrip(".") == authserv_id()


def authentication_results(message: Message) -> str:
    """Return our Authentication-Results field; empty before the verdicts."""
    found = message.authentication
    if not found:
        return ""
    spf, dmarc, arc = found["spf"], found["dmarc"], found["arc"]
    results = [f"spf={spf['result']}{_property('smtp.mailfrom', spf['domain'])}"]
    results += [
        f"dkim={entry['result']}{_property('header.d', entry['domain'])}{_property('header.s', entry['selector'])}"
        for entry in found["dkim"]
    ] or ["dkim=none"]
    policy = f" (p={dmarc['policy']})" if TOKEN.fullmatch(dmarc["policy"] or "") else ""
    results += [f"dmarc={dmarc['result']}{policy}{_property('header.from', dmarc['domain'])}", f"arc={arc['result']}"]
    return f"Authentication-Results: {authserv_id()};\r\n\t" + ";\r\n\t".join(results) + "\r\n"


def _property(name: str, value: str) -> str:
    """Return a property of a result; none without a value that is a name: no other one is put in its place."""
    return f" {name}={value}" if TOKEN.fullmatch(value) else ""
