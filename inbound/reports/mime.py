"""MIME parsing in bounded time, for messages from any sender.

The standard library's parser takes a second for a megabyte of empty lines, and raises on some real messages. Reports
are recognized by few headers and short texts, so this parser splits bytes and stops at limits that no genuine report
reaches. All line endings are accepted: reports are forwarded, stored and exported.
"""

import base64
import binascii
import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from lib.mail.charsets import UNENCODABLE, find_codec

MAX_BYTES = 256 * 1024
MAX_DEPTH = 5
MAX_PARTS = 40
MAX_HEADER_BYTES = 32 * 1024
MAX_HEADER_LINES = 400
MAX_VALUE = 2_000
MAX_TEXT = 32 * 1024

MBOX_LINE = re.compile(rb"\n*>?From [^\n]*\n")
ENCODED_WORD = re.compile(r"=\?([A-Za-z0-9_.:-]{1,40})(?:\*[A-Za-z-]{1,20})?\?([bBqQ])\?([^? \n]{0,500})\?=")
BETWEEN_WORDS = re.compile(r"(\?=)[ \t\n]{1,20}(=\?)")
BOUNDARY = re.compile(r"""boundary[ \t]*=[ \t]*(?:"([^"\n]{1,200})"|([^\s;"]{1,200}))""", re.IGNORECASE)
CHARSET = re.compile(r"""charset[ \t]*=[ \t]*["']?([A-Za-z0-9_.:-]{1,40})""", re.IGNORECASE)
BLOCK_TAGS = ("br", "p", "div", "tr", "li", "hr", "h1", "h2", "h3", "td", "/p", "/div", "/tr", "pre")
TAG_NAME = re.compile(r"/?(?:!--|[a-z0-9]{1,10})")
HIDDEN_TAGS = ("style", "script", "head", "title", "!--")


@dataclass(frozen=True)
class Part:
    """A leaf of a message, or the message itself: header names in lower case, the body as received."""

    headers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    body: bytes = b""

    def header(self, name: str) -> str:
        """Return the first header with this name, unfolded and decoded, or ""."""
        return self.headers.get(name, ("",))[0]

    @cached_property
    def content_type(self) -> str:
        return self.header("content-type").partition(";")[0].strip().lower() or "text/plain"

    @cached_property
    def content(self) -> bytes:
        """The body without its transfer encoding."""
        encoding = self.header("content-transfer-encoding").strip().lower()
        if encoding == "quoted-printable":
            return binascii.a2b_qp(self.body)
        return _base64(self.body) if encoding == "base64" else self.body

    @cached_property
    def text(self) -> str:
        """The body as visible text, cut to MAX_TEXT characters."""
        charset = CHARSET.search(self.header("content-type"))
        visible = decode(self.content[: 4 * MAX_TEXT], charset[1] if charset else "")[:MAX_TEXT]
        return _visible_text(visible) if self.content_type == "text/html" else visible


@dataclass(frozen=True)
class Message(Part):
    """A message with its leaves in order; a message without parts is its only leaf."""

    leaves: tuple[Part, ...] = ()


def read_message(raw: bytes) -> Message:
    """Return a message and its leaves. Reads the first MAX_BYTES, never raises."""
    source = raw[:MAX_BYTES].replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"\0", b"")
    source = source.lstrip(b"\n")
    opening = MBOX_LINE.match(source)
    whole = _part(source[opening.end() :] if opening else source)
    leaves: list[Part] = []
    _collect(whole, leaves, depth=0)
    return Message(whole.headers, whole.body, tuple(leaves))


def decode(data: bytes, charset: str = "") -> str:
    """Decode bytes by the charset if it is known and fast, else as UTF-8, else as Latin-1."""
    for name in (find_codec(charset), "utf-8"):
        try:
            return UNENCODABLE.sub("", data.decode(name))
        except (UnicodeError, ValueError):
            continue
    return data.decode("latin-1")


def _collect(part: Part, leaves: list[Part], *, depth: int) -> None:
    pieces = list(_pieces(part)) if depth < MAX_DEPTH else []
    if not pieces:
        leaves.append(_as_text(part) if part.content_type.startswith("multipart/") else part)
    for piece in pieces:
        if len(leaves) >= MAX_PARTS:
            return
        _collect(_part(piece), leaves, depth=depth + 1)


def _as_text(part: Part) -> Part:
    """Return a multipart without a readable part, whose boundary matches nothing, as plain text."""
    return Part({**part.headers, "content-type": ("text/plain",)}, part.body)


def _pieces(part: Part) -> Iterator[bytes]:
    """Yield the parts between the boundaries of a multipart."""
    found = BOUNDARY.search(part.header("content-type"))
    if not found or not part.content_type.startswith("multipart/"):
        return
    boundary = (found[1] or found[2]).rstrip().encode("utf-8", "replace")
    _, *rest = (b"\n" + part.body).split(b"\n--" + boundary, MAX_PARTS + 1)
    for piece in rest:
        if piece.startswith(b"--"):
            return
        yield piece.partition(b"\n")[2]


def _part(source: bytes) -> Part:
    # A part without headers begins with the empty line.
    if source.startswith(b"\n"):
        return Part({}, source[1:])
    head, _, body = source.partition(b"\n\n")
    return Part(_headers(head[:MAX_HEADER_BYTES]), body)


def _headers(head: bytes) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for name, value in unfold_fields(decode(head)):
        found[name] = (*found.get(name, ())[:20], _decoded_words(value))
    return found


def unfold_fields(head: str) -> Iterator[tuple[str, str]]:
    """Yield (name in lower case, value) for each field; other lines are dropped."""
    name, value = "", ""
    for line in head.split("\n", MAX_HEADER_LINES)[:MAX_HEADER_LINES]:
        if line[:1] in {" ", "\t"}:
            value = f"{value} {line.strip()}"[:MAX_VALUE]
            continue
        if name:
            yield name, value
        before, colon, after = line.partition(":")
        name = before.strip().lower() if colon and len(before) <= 80 else ""
        value = after.strip()[:MAX_VALUE]
    if name:
        yield name, value


def _decoded_words(value: str) -> str:
    """Decode the encoded words of RFC 2047."""
    return ENCODED_WORD.sub(_decoded_word, BETWEEN_WORDS.sub(r"\1\2", value)) if "=?" in value else value


def _decoded_word(found: re.Match[str]) -> str:
    charset, encoding, text = found.groups()
    data = text.encode("utf-8", "replace")
    plain = _base64(data) if encoding in "bB" else binascii.a2b_qp(data, header=True)
    return decode(plain, charset)


def _base64(data: bytes) -> bytes:
    """Decode as much as possible: a truncated report still has most of its content."""
    clean = b"".join(data.split())
    try:
        return base64.b64decode(clean[: len(clean) // 4 * 4])
    except (binascii.Error, ValueError):
        return data


def _visible_text(source: str) -> str:
    """Return the visible text of HTML: tags are removed, each block starts a line. Linear for any input."""
    first, *rest = source.split("<")
    pieces, hidden = [first], ""
    for piece in rest:
        tag, _, text = piece.partition(">")
        found = TAG_NAME.match(tag.lower())
        name = found[0] if found else ""
        hidden = _hidden_after(name, hidden)
        if not hidden:
            pieces.append(("\n" if name.startswith(BLOCK_TAGS) else "") + text)
    return _unescaped("".join(pieces))


def _hidden_after(name: str, hidden: str) -> str:
    """Return the hidden tag that is open after this one, "" if none is."""
    if hidden:
        return "" if name == f"/{hidden}" or hidden == "!--" else hidden
    return name if name in HIDDEN_TAGS else ""


def _unescaped(text: str) -> str:
    try:
        return html.unescape(text)
    except ValueError:
        # A character reference with more digits than Python converts.
        return text
