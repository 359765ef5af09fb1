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

from delivery.headers import encoded_address, encoded_text, folded_list
from delivery.plain_text import text_of_html

CRLF = "\r\n"


@dataclass(frozen=True)
class Mailbox:
    """A display name, possibly empty, and an addr-spec."""

    name: str
    spec: str


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
    yield f"Subject: {encoded_text(letter.subject, used=len('Subject: '))}"
    yield f"Date: {format_datetime(letter.date.astimezone(UTC))}"
    yield f"Message-ID: {letter.message_id}"
    yield "Auto-Submitted: auto-generated"
    yield "MIME-Version: 1.0"


def _mailboxes(name: str, mailboxes: tuple[Mailbox, ...]) -> str:
    return folded_list(name, [encoded_address(mailbox.name, mailbox.spec) for mailbox in mailboxes])


def _body(letter: Letter) -> Iterator[str]:
    if not letter.html:
        yield from _part("plain", letter.text)
        return
    boundary = _boundary(letter)
    yield "Content-Type: multipart/alternative;"
    yield f' boundary="{boundary}"'
    yield ""
    yield f"--{boundary}"
    yield from _part("plain", letter.text or text_of_html(letter.html))
    yield f"--{boundary}"
    yield from _part("html", letter.html)
    yield f"--{boundary}--"


def _part(subtype: str, text: str) -> Iterator[str]:
    yield f"Content-Type: text/{subtype}; charset=utf-8"
    yield "Content-Transfer-Encoding: base64"
    yield ""
    # encodebytes ends every 76 characters with a line feed, the last line too.
    yield base64.encodebytes(text.encode()).decode("ascii").rstrip("\n").replace("\n", CRLF)


def _boundary(letter: Letter) -> str:
    # Made from the Message-ID, so that every attempt has the same bytes; "=_" never occurs in base64.
    return f"=_{hashlib.sha256(letter.message_id.encode()).hexdigest()[:32]}"
