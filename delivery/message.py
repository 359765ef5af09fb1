"""Compose a message: RFC 5322 headers, MIME parts in base64, lines within their limits.

Pure: what goes in is a Letter, what comes out are the bytes that are signed and sent. The same letter
makes the same bytes on every attempt.
"""

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime

from delivery.headers import encoded_address, filename_parameters, folded_list, text_header
from delivery.plain_text import text_of_html

CRLF = "\r\n"
FOLD_LINE = ";\r\n "


@dataclass(frozen=True)
class Mailbox:
    """A display name, possibly empty, and an addr-spec."""

    name: str
    spec: str


@dataclass(frozen=True)
class File:
    """An attachment; content_id makes it an inline image of the HTML."""

    filename: str
    content_type: str
    data: bytes
    content_id: str | None = None


@dataclass(frozen=True)
class Letter:
    """What one recipient gets. date is the same on every attempt; message_id has its angle brackets."""

    message_id: str
    date: datetime
    sender: Mailbox
    to: tuple[Mailbox, ...]
    cc: tuple[Mailbox, ...]
    reply_to: Mailbox | None
    subject: str
    html: str
    text: str
    headers: tuple[tuple[str, str], ...] = ()
    files: tuple[File, ...] = ()


def compose(letter: Letter) -> bytes:
    """Return the message, CRLF line ends, 7-bit."""
    return CRLF.join([*_headers(letter), *_body(letter), ""]).encode("ascii")


def _headers(letter: Letter) -> Iterator[str]:
    yield f"From: {encoded_address(letter.sender.name, letter.sender.spec)}"
    if letter.to:
        yield _mailboxes("To", letter.to)
    if letter.cc:
        yield _mailboxes("Cc", letter.cc)
    if letter.reply_to:
        yield _mailboxes("Reply-To", (letter.reply_to,))
    yield text_header("Subject", letter.subject)
    yield f"Date: {format_datetime(letter.date.astimezone(UTC))}"
    yield f"Message-ID: {letter.message_id}"
    yield "Auto-Submitted: auto-generated"
    for name, value in letter.headers:
        yield text_header(name, value)
    yield "MIME-Version: 1.0"


def _mailboxes(name: str, mailboxes: tuple[Mailbox, ...]) -> str:
    return folded_list(name, [encoded_address(mailbox.name, mailbox.spec) for mailbox in mailboxes])


def _body(letter: Letter) -> list[str]:
    """Nest mixed(related(alternative(text, html), inline images), attachments); what is not needed is left out."""
    inline = [file for file in letter.files if file.content_id and letter.html]
    attached = [file for file in letter.files if file not in inline]
    body = _texts(letter)
    if inline:
        body = _multipart(letter, "related", [body, *map(_file, inline)])
    if attached:
        body = _multipart(letter, "mixed", [body, *map(_file, attached)])
    return body


def _texts(letter: Letter) -> list[str]:
    if not letter.html:
        return _text("plain", letter.text)
    plain = _text("plain", letter.text or text_of_html(letter.html))
    return _multipart(letter, "alternative", [plain, _text("html", letter.html)])


def _multipart(letter: Letter, subtype: str, parts: list[list[str]]) -> list[str]:
    # Made from the Message-ID, so that every attempt has the same bytes; "=_" never occurs in base64.
    boundary = f"=_{hashlib.sha256(f'{subtype}{letter.message_id}'.encode()).hexdigest()[:32]}"
    lines = [f"Content-Type: multipart/{subtype};", f' boundary="{boundary}"', ""]
    for part in parts:
        lines += [f"--{boundary}", *part]
    return [*lines, f"--{boundary}--"]


def _text(subtype: str, text: str) -> list[str]:
    return [f"Content-Type: text/{subtype}; charset=utf-8", *_encoded(text.encode())]


def _file(file: File) -> list[str]:
    disposition = "inline" if file.content_id else "attachment"
    lines = [
        f"Content-Type: {file.content_type}",
        FOLD_LINE.join([f"Content-Disposition: {disposition}", *filename_parameters(file.filename)]),
    ]
    if file.content_id:
        lines.append(f"Content-ID: <{file.content_id}>")
    return [*lines, *_encoded(file.data)]


def _encoded(data: bytes) -> list[str]:
    # encodebytes ends every 76 characters with a line feed, the last line too.
    encoded = base64.encodebytes(data).decode("ascii").rstrip("\n").replace("\n", CRLF)
    return ["Content-Transfer-Encoding: base64", "", encoded]
