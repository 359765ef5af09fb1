"""Parsing of caught messages for display: never raises, takes bounded time, and removes NUL characters."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from core.lib.coded_texts import CodedText, join_sentences
from core.lib.mail.charsets import UNENCODABLE, decode_tolerantly
from core.lib.mail.mime import MimePart, read_message
from core.lib.mail.mime_policy import MimePolicy, TooManyParts

MAX_PARTS = 100
MAX_HEADERS = 200
MAX_HEADER_CHARACTERS = 8_000
MAX_BODY_CHARACTERS = 2 * 1024 * 1024
HEADER_END = re.compile(rb"\r?\n\r?\n")
# The parts of attached messages are shown with the others.
INBOX = MimePolicy(max_depth=20, max_parts=MAX_PARTS, opens_messages=True)


@dataclass(frozen=True)
class CaughtAttachment:
    filename: str
    content_type: str
    size_bytes: int


@dataclass(frozen=True)
class ParsedMail:
    """The displayed content of a message. error explains why it could not be parsed; empty otherwise."""

    headers: tuple[tuple[str, str], ...] = ()
    html: str = ""
    text: str = ""
    attachments: tuple[CaughtAttachment, ...] = ()
    error: str = ""


@dataclass
class _Bodies:
    html: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    attachments: list[CaughtAttachment] = field(default_factory=list)

    def add(self, part: MimePart) -> None:
        if part.is_container:
            return
        if part.disposition == "attachment" or part.kind not in {"text/html", "text/plain"}:
            self.attachments.append(_attachment(part))
        else:
            (self.html if part.kind == "text/html" else self.text).append(_body(part))


def read_mail(source: bytes) -> ParsedMail:
    """Return the headers, bodies and attachments, or only the error of a message that cannot be parsed."""
    try:
        return _read(read_message(source, INBOX))
    except TooManyParts:
        error = CodedText("inbound.too_many_parts", limit=MAX_PARTS)
    # Input from the internet can break a parser in unforeseen ways; the page must still load.
    except Exception:  # noqa: BLE001
        error = CodedText("inbound.malformed")
    return ParsedMail(error=join_sentences(error, CodedText("inbound.view_source")))


def read_headers(source: bytes) -> tuple[tuple[str, str], ...]:
    """Return the headers of a message, without reading its parts."""
    return tuple(_headers(read_message(source, INBOX)))


def read_header(source: bytes) -> bytes:
    """Return the header of a message as it is, without its content."""
    return HEADER_END.split(source, 1)[0] + b"\r\n\r\n"


def replace_unencodable(text: str) -> str:
    """Replace the characters that neither HTML nor UTF-8 can represent."""
    return UNENCODABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def _read(message: MimePart) -> ParsedMail:
    bodies = _Bodies()
    for part in message.walk():
        bodies.add(part)
    return ParsedMail(
        headers=tuple(_headers(message)),
        html="".join(bodies.html[:1]),
        text="\n".join(bodies.text),
        attachments=tuple(bodies.attachments),
    )


def _headers(message: MimePart) -> Iterator[tuple[str, str]]:
    for header in message.fields[:MAX_HEADERS]:
        yield header.name, replace_unencodable(header.decoded[:MAX_HEADER_CHARACTERS])


def _attachment(part: MimePart) -> CaughtAttachment:
    name = replace_unencodable(part.filename or "unnamed")
    return CaughtAttachment(filename=name, content_type=replace_unencodable(part.kind), size_bytes=len(part.content))


def _body(part: MimePart) -> str:
    return decode_tolerantly(part.content, part.charset, kind=part.kind)[:MAX_BODY_CHARACTERS]
