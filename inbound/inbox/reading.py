"""Parsing of caught messages for display: never raises, takes bounded time, and removes NUL characters.

Uses compat32 because policy.default parses every header by grammar, and raises or recurses on some real headers.
Sizes are cut at limits that no genuine message reaches.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import Message
from email.parser import BytesParser
from email.policy import Compat32
from typing import Any

from lib.mail.charsets import UNENCODABLE, find_codec
from lib.mail.encoded_words import decode_words

MAX_BYTES = 24 * 1024 * 1024
MAX_LINES = 400_000
MAX_HEADERS = 200
MAX_HEADER_CHARACTERS = 8_000
MAX_PARTS = 100
MAX_BODY_CHARACTERS = 2 * 1024 * 1024


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


class TooManyParts(Exception):
    """Raised inside the parser, so that a message with a million parts does not exhaust the process."""


@dataclass
class _PartFactory:
    """Creates the message parts for the parser, up to MAX_PARTS."""

    made: int = 0

    def __call__(self, policy: Any = None) -> Message:
        self.made += 1
        if self.made > MAX_PARTS:
            raise TooManyParts
        return Message(policy=policy)


class _TruncatingPolicy(Compat32):
    """Truncates every header before parsing: parsing the parameters of a long one takes quadratic time."""

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(sourcelines)
        return name[:200], value[:MAX_HEADER_CHARACTERS]


@dataclass
class _Bodies:
    html: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    attachments: list[CaughtAttachment] = field(default_factory=list)


def read_mail(source: bytes) -> ParsedMail:
    """Return the headers, bodies and attachments, or only the error of a message that cannot be parsed."""
    try:
        return _read(_cut(source))
    except TooManyParts:
        error = f"The message has more than {MAX_PARTS} parts. View the source for details."
    # Input from the internet can break a parser in unforeseen ways; the page must still load.
    except Exception:  # noqa: BLE001
        error = "The message is malformed. View the source for details."
    return ParsedMail(error=error)


def replace_unencodable(text: str) -> str:
    """Replace the characters that neither HTML nor UTF-8 can represent."""
    return UNENCODABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def _cut(source: bytes) -> bytes:
    lines = source[:MAX_BYTES].split(b"\n", MAX_LINES)
    return b"\n".join(lines[:MAX_LINES])


def _read(source: bytes) -> ParsedMail:
    message = BytesParser(_PartFactory(), policy=_TruncatingPolicy()).parsebytes(source)
    bodies = _Bodies()
    for part in message.walk():
        _collect_part(part, bodies)
    return ParsedMail(
        headers=tuple(_headers(message)),
        html="".join(bodies.html[:1]),
        text="\n".join(bodies.text),
        attachments=tuple(bodies.attachments),
    )


def _headers(message: Message) -> Iterator[tuple[str, str]]:
    for name, value in list(message.raw_items())[:MAX_HEADERS]:
        yield replace_unencodable(name), _decoded_header(str(value))


def _decoded_header(value: str) -> str:
    # Non-ASCII bytes are parsed as surrogates; most of them are UTF-8.
    decoded = value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return replace_unencodable(decode_words(re.sub(r"\r?\n[ \t]*", " ", decoded)))


def _collect_part(part: Message, bodies: _Bodies) -> None:
    if part.is_multipart():
        return
    kind = part.get_content_type()
    if part.get_content_disposition() == "attachment" or kind not in {"text/html", "text/plain"}:
        bodies.attachments.append(_attachment(part, kind))
        return
    (bodies.html if kind == "text/html" else bodies.text).append(_body(part))


def _attachment(part: Message, kind: str) -> CaughtAttachment:
    name = _decoded_header(part.get_filename() or "unnamed")
    return CaughtAttachment(filename=name, content_type=replace_unencodable(kind), size_bytes=len(_payload(part)))


def _body(part: Message) -> str:
    charset = str(part.get_content_charset() or "utf-8")
    return replace_unencodable(_payload(part).decode(find_codec(charset), "replace")[:MAX_BODY_CHARACTERS])


def _payload(part: Message) -> bytes:
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""
