"""The source of received messages as it is shown: our fields in front, forged ones removed, attachments decoded."""

import base64
import functools
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import idna
from django.conf import settings

from core.lib.mail.charsets import decode_tolerantly
from core.lib.mail.encoded_words import decode_words
from core.lib.mail.header_bounds import EMPTY_LINES, END_OF_HEADER
from core.lib.mail.transfer_encodings import decode_base64, decode_quoted_printable
from receiving import content
from receiving.models import Message

# A header that is longer ends there in what is shown, so that a download takes bounded time.
MAX_HEADER_BYTES = 1024 * 1024
# The expressions below take linear time. A bare CR ends a line, as it does for some programs; others drop NUL, or take
# further characters for white space.
FIELD_END = rb"(?:(?:\r\n|\n)(?![ \t])|\r(?![\n \t])|\Z)"
FIELD = re.compile(rb".+?" + FIELD_END, re.DOTALL)
RESULTS = re.compile(
    rb"(?<![^\r\n])[\v\f\0]*%b[\s\0]*:(.*?)%b"
    % (rb"\0*".join(b"%c" % letter for letter in b"Authentication-Results"), FIELD_END),
    re.DOTALL | re.IGNORECASE,
)
# The start of the first line that does not continue the field before it.
FIRST_FIELD = re.compile(rb"(?<![^\r\n])(?<!\r(?=\n))(?![ \t\v\f\0]|\r(?!\n))")
# RFC 8601, section 2.2: a token or a quoted string, behind white space and comments.
AUTHSERV_ID = re.compile(r'(?: |\((?:[^()\\]|\\.)*\))*(?:"((?:[^"\\]|\\.)*)"|([^ ;"(]+))', re.DOTALL)
COMMENT = re.compile(r"\((?:[^()\\]|\\.)*\)", re.DOTALL)
# Comments in comments that are read.
MAX_COMMENT_DEPTH = 4
# Characters of no host name, such as quotes and backslashes, which some programs leave out. An equals sign belongs to a
# result, which is no authserv-id.
NOT_NAME = re.compile(r"[^\w.=-]+")
# RFC 8601, section 2.2: a version may follow.
VERSION = re.compile(r"\.?\d*")
# Bytes, or characters, of a field in which its authserv-id is looked for.
MAX_CLAIM_BYTES = 1000
RESULTS_NAME = "authentication-results"
# Images that a message shows in its text: of these types, as often as they appear in the HTML.
INLINE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
INLINE_BYTES = 5 * 1024 * 1024
# Texts of which a page shows the beginning.
TEXT_TYPES = frozenset({"text/plain", "text/csv", "text/tab-separated-values", "text/markdown", "text/x-log"})
PREVIEW_TEXT_BYTES = 64 * 1024
BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff")
# The beginning of a character in UTF-8 whose end was cut off.
CUT_CHARACTER = re.compile(rb"[\xc0-\xff][\x80-\xbf]{0,2}\Z")
# A domain name or selector. Values of a sender are shown only as they are.
TOKEN = re.compile(r"[A-Za-z0-9._-]{1,255}")
CONTENT_ID = re.compile(r"cid:([^\s\"'<>()]{1,255}+)")


def authserv_id() -> str:
    """Return our name in Authentication-Results (RFC 8601, section 2.5)."""
    return str(settings.EHLO_NAME).lower()


def read_source(message: Message) -> Iterator[bytes]:
    """Yield the source of a message: our Received and Authentication-Results, then what was received."""
    yield (message.trace + authentication_results(message)).encode()
    header, rest = read_head(message)
    yield without_forged_results(header)
    yield rest
    yield from content.read_pieces(message.content_id, start=MAX_HEADER_BYTES, end=message.size)


def read_head(message: Message) -> tuple[bytes, bytes]:
    """Return the header of a message with its line ends, and what follows it in the first MAX_HEADER_BYTES.

    A longer header ends at the last line end in them, with an empty line: its other fields are shown as a part of the
    body, so that none of them can be taken for ours (docs/decisions/0231).
    """
    head = content.open_range(message.content_id, 0, min(message.size, MAX_HEADER_BYTES))
    header, rest = split_header(head)
    if rest or len(header) < MAX_HEADER_BYTES or header.endswith((b"\n\n", b"\n\r\n")):
        return header, rest
    last = head.rfind(b"\n") + 1 or len(head)
    return head[:last].removesuffix(b"\n").removesuffix(b"\r") + b"\r\n\r\n", head[last:]


def split_header(source: bytes) -> tuple[bytes, bytes]:
    """Return a header with the empty line after it, and the rest. Without such a line, everything is header."""
    if source.startswith(EMPTY_LINES):
        size = source.index(b"\n") + 1
    else:
        end = END_OF_HEADER.search(source)
        size = end.end() if end else len(source)
    return source[:size], source[size:]


def read_attachment(message: Message, entry: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield the decoded bytes of an attachment. entry: of Message.attachments."""
    body = content.open_range(message.content_id, entry["start"], entry["end"])
    yield decode_part(body, entry["encoding"])


def preview_kind(entry: Mapping[str, Any]) -> str:
    """Return how a page may show an attachment (docs/decisions/0322): as `image` or `text`, or "" for not at all."""
    if entry["contentType"] in INLINE_TYPES and 0 < entry["size"] <= INLINE_BYTES:
        return "image"
    return "text" if entry["contentType"] in TEXT_TYPES and entry["size"] else ""


def preview_text(message: Message, entry: Mapping[str, Any]) -> tuple[str, bool]:
    """Return the beginning of an attachment as text, and whether it is cut.

    Its charset is not kept: it is UTF-8 or windows-1252, or UTF-16 with a byte order mark.
    """
    # Base64 and quoted-printable have at most four bytes for one, and line ends.
    end = min(entry["end"], entry["start"] + 4 * PREVIEW_TEXT_BYTES)
    body = content.open_range(message.content_id, entry["start"], end)
    data = decode_part(body, entry["encoding"])[:PREVIEW_TEXT_BYTES]
    is_cut = len(data) < entry["size"]
    whole = CUT_CHARACTER.sub(b"", data) if is_cut else data
    text = decode_tolerantly(whole, "utf-16" if data[:2] in BYTE_ORDER_MARKS else "")
    return text.replace("\r\n", "\n").removeprefix("\ufeff"), is_cut


def html_with_images(message: Message) -> str:
    """Return the HTML with the images that it shows by `cid:`, as far as they fit into INLINE_BYTES."""
    known = {entry["contentId"] for entry in message.attachments if entry["contentType"] in INLINE_TYPES}
    shown = Counter(found[1] for found in CONTENT_ID.finditer(message.html) if found[1] in known)
    images: dict[str, str] = {}
    left = INLINE_BYTES
    for entry in message.attachments:
        name = entry["contentId"]
        size = entry["size"] * shown[name] * 4 // 3
        if name in images or entry["contentType"] not in INLINE_TYPES or not 0 < size <= left:
            continue
        data = base64.b64encode(b"".join(read_attachment(message, entry))).decode()
        images[name], left = f"data:{entry['contentType']};base64,{data}", left - size
    return CONTENT_ID.sub(lambda found: images.get(found[1], found[0]), message.html) if images else message.html


def decode_part(body: bytes, encoding: str) -> bytes:
    """Return a body without its transfer encoding; of broken base64 what can be read."""
    if encoding == "quoted-printable":
        return decode_quoted_printable(body)
    if encoding == "base64":
        return decode_base64(body).data
    return body


def without_forged_results(header: bytes) -> bytes:
    """Return a header that can follow our fields: without Authentication-Results that claim to be ours.

    RFC 8601, section 5; also without those whose authserv-id cannot be read, and without lines in front of the first
    field, which would continue our last one.
    """
    if header.startswith(EMPTY_LINES):
        return header
    own = _spellings(authserv_id())
    shown = RESULTS.sub(lambda field: b"" if _claims(own, _claim_text(field[1])) else field[0], header)
    first = FIRST_FIELD.search(shown)
    return shown[first.start() :] if first else b""


def shown_headers(message: Message) -> list[list[str]]:
    """Return the header fields that were read, without forged results."""
    own = _spellings(authserv_id())
    return [
        [name, value]
        for name, value in message.headers
        if name.strip().lower() != RESULTS_NAME or not _claims(own, value[:MAX_CLAIM_BYTES])
    ]


def _claim_text(value: bytes) -> str:
    return value[:MAX_CLAIM_BYTES].replace(b"\0", b"").decode("utf-8", "replace")


def _claims(names: Collection[str], value: str) -> bool:
    """Return whether the authserv-id of a field is one of these names or cannot be read."""
    text = decode_words(" ".join(value.split()))
    found = AUTHSERV_ID.match(text)
    if found is None:
        return True
    claimed = found[2] or re.sub(r"\\(.)", r"\1", found[1] or "")
    return claimed.strip().lower().rstrip(".") in names or _resembles(names, text)


def _resembles(names: Collection[str], text: str) -> bool:
    """Return whether a program that leaves out comments, quotes and other characters may read one of these names.

    Such a program takes what they separate for one word, or for several of which the first is the name.
    """
    for _ in range(MAX_COMMENT_DEPTH):
        text = COMMENT.sub("", text)
    beginning = text.partition(";")[0].lower()
    joined, first = NOT_NAME.sub("", beginning), "".join(NOT_NAME.sub(" ", beginning).split()[:1]).rstrip(".")
    return any(first == name or (joined.startswith(name) and VERSION.fullmatch(joined, len(name))) for name in names)


@functools.lru_cache(maxsize=8)
def _spellings(name: str) -> frozenset[str]:
    """Return a host name as A-labels and as U-labels, which RFC 8616, section 5, allows in this field."""
    try:
        return frozenset({name, idna.decode(name)})
    except idna.IDNAError:
        return frozenset({name})


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
