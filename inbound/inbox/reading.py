"""Read a message that anybody may have written: never raises, never takes long, never keeps a NUL.

compat32 instead of policy.default: the latter parses every header by grammar, and raises or recurses on
some that the world sends. What is shown is cut where no honest message is that large.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from email.message import Message
from email.parser import BytesParser
from email.policy import Compat32
from typing import Any

from inbound.charsets import UNSEEN, codec_of

MAX_BYTES = 24 * 1024 * 1024
MAX_LINES = 400_000
MAX_HEADERS = 200
MAX_HEADER_CHARACTERS = 8_000
MAX_PARTS = 100
MAX_BODY_CHARACTERS = 2 * 1024 * 1024


@dataclass(frozen=True)
class Attachment:
    filename: str
    content_type: str
    size_bytes: int


@dataclass(frozen=True)
class ReadMail:
    """What a page shows of a message. complaint says why it could not be read, else it is empty."""

    headers: tuple[tuple[str, str], ...] = ()
    html: str = ""
    text: str = ""
    attachments: tuple[Attachment, ...] = ()
    complaint: str = ""


class TooManyParts(Exception):
    """Raised inside the parser, so that a message of a million parts does not take the process along."""


@dataclass
class _Factory:
    """Makes the parser's parts, up to a number."""

    made: int = 0

    def __call__(self, policy: Any = None) -> Message:
        self.made += 1
        if self.made > MAX_PARTS:
            raise TooManyParts
        return Message(policy=policy)


class _Bounded(Compat32):
    """Cuts every header where it is read: the parameters of a long one take time squared."""

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(sourcelines)
        return name[:200], value[:MAX_HEADER_CHARACTERS]


@dataclass
class _Bodies:
    html: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    attachments: list[Attachment] = field(default_factory=list)


def read_mail(source: bytes) -> ReadMail:
    """Return the headers and bodies; of what cannot be read, only the reason."""
    try:
        return _read(_cut(source))
    except TooManyParts:
        complaint = f"The message has more than {MAX_PARTS} parts."
    # Broken mail finds new ways to break a parser; a page about it must not break with it.
    except Exception:  # noqa: BLE001
        complaint = "The message is malformed."
    return ReadMail(complaint=f"{complaint} Its source tells more.")


def shown(text: str) -> str:
    """Replace what neither HTML nor UTF-8 can carry."""
    return UNSEEN.sub("\N{REPLACEMENT CHARACTER}", text)


def _cut(source: bytes) -> bytes:
    lines = source[:MAX_BYTES].split(b"\n", MAX_LINES)
    return b"\n".join(lines[:MAX_LINES])


def _read(source: bytes) -> ReadMail:
    message = BytesParser(_Factory(), policy=_Bounded()).parsebytes(source)
    bodies = _Bodies()
    for part in message.walk():
        _sort_in(part, bodies)
    return ReadMail(
        headers=tuple(_headers(message)),
        html="".join(bodies.html[:1]),
        text="\n".join(bodies.text),
        attachments=tuple(bodies.attachments),
    )


def _headers(message: Message) -> Iterator[tuple[str, str]]:
    for name, value in list(message.raw_items())[:MAX_HEADERS]:
        yield shown(name), _decoded_header(str(value))


def _decoded_header(value: str) -> str:
    # Bytes beyond ASCII come as surrogates; most of them are UTF-8.
    plain = value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    unfolded = re.sub(r"\r?\n[ \t]*", " ", plain)
    try:
        return shown(str(make_header(decode_header(unfolded))))
    except (HeaderParseError, LookupError, ValueError):
        return shown(unfolded)


def _sort_in(part: Message, bodies: _Bodies) -> None:
    if part.is_multipart():
        return
    kind = part.get_content_type()
    if part.get_content_disposition() == "attachment" or kind not in {"text/html", "text/plain"}:
        bodies.attachments.append(_attachment(part, kind))
        return
    (bodies.html if kind == "text/html" else bodies.text).append(_body(part))


def _attachment(part: Message, kind: str) -> Attachment:
    name = _decoded_header(part.get_filename() or "without a name")
    return Attachment(filename=name, content_type=shown(kind), size_bytes=len(_payload(part)))


def _body(part: Message) -> str:
    charset = str(part.get_content_charset() or "utf-8")
    return shown(_payload(part).decode(codec_of(charset), "replace")[:MAX_BODY_CHARACTERS])


def _payload(part: Message) -> bytes:
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""
