"""The parts of a report that show its result: few header fields, and the visible text of each part.

The bounds are smaller than those of other messages: no genuine report reaches them. All line ends are accepted, because
reports are forwarded, stored and exported.
"""

import html
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from core.lib.mail.charsets import decode_tolerantly
from core.lib.mail.encoded_words import decode_words
from core.lib.mail.header_fields import MessageField, read_fields
from core.lib.mail.mime import MimePart
from core.lib.mail.mime import read_message as read_mime
from core.lib.mail.mime_policy import MimePolicy, TooManyParts

MAX_BYTES = 256 * 1024
MAX_FIELDS = 400
MAX_VALUE = 2_000
MAX_TEXT = 32 * 1024
REPORT = MimePolicy(max_bytes=MAX_BYTES, max_header_bytes=32 * 1024, max_fields=MAX_FIELDS, max_depth=5, max_parts=40)

MBOX_LINE = re.compile(rb"\n*>?From [^\n]*\n")
BLOCK_TAGS = ("br", "p", "div", "tr", "li", "hr", "h1", "h2", "h3", "td", "/p", "/div", "/tr", "pre")
TAG_NAME = re.compile(r"/?(?:!--|[a-z0-9]{1,10})")
HIDDEN_TAGS = ("style", "script", "head", "title", "!--")


@dataclass(frozen=True)
class ReportPart:
    """A part without parts."""

    part: MimePart

    @property
    def kind(self) -> str:
        return self.part.kind

    @cached_property
    def content(self) -> bytes:
        """The body without its transfer encoding."""
        return self.part.content

    @cached_property
    def text(self) -> str:
        """The body as visible text, cut to MAX_TEXT characters."""
        text = decode_tolerantly(self.content[: 4 * MAX_TEXT], self.part.charset, kind=self.kind)[:MAX_TEXT]
        return _visible_text(text) if self.kind == "text/html" else text


@dataclass(frozen=True)
class ReportMessage:
    """A message with its leaves in order; a message without parts is its only leaf."""

    fields: tuple[MessageField, ...]
    leaves: tuple[ReportPart, ...]

    def header(self, name: str) -> str:
        """Return the first header with this name in lower case, unfolded and decoded, or ""."""
        return next(self.headers(name), "")

    def headers(self, name: str) -> Iterator[str]:
        """Yield all headers with this name."""
        return (decode_words(_unfolded(raw)) for field, raw in self.fields if field.lower() == name)


def read_message(raw: bytes) -> ReportMessage:
    """Return a message and its leaves. Reads the first MAX_BYTES, never raises."""
    source = raw[:MAX_BYTES].replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"\0", b"").lstrip(b"\n")
    opening = MBOX_LINE.match(source)
    message = read_mime(source[opening.end() :] if opening else source, REPORT)
    leaves: list[ReportPart] = []
    with suppress(TooManyParts):
        leaves.extend(ReportPart(part) for part in message.walk() if not part.is_container)
    return ReportMessage(message.fields, tuple(leaves))


def read_status_fields(text: str) -> Iterator[tuple[str, str]]:
    """Yield (name in lower case, value) for each field in a text of fields; other lines are dropped."""
    for name, raw in read_fields(text, limit=MAX_FIELDS):
        yield name.lower(), _unfolded(raw)


def _unfolded(raw: str) -> str:
    return " ".join(line.strip() for line in raw.split("\n"))[:MAX_VALUE].strip()


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
