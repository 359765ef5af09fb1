"""Compose a message: RFC 5322 headers, MIME parts in 7 bits, lines within their limits.

Pure: what goes in is a Letter, what comes out are the bytes that are signed and sent. The same letter
makes the same bytes on every attempt.
"""

import hashlib
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime

from delivery.message.encoding import encode_bytes, encode_text
from delivery.message.errors import UnsafeHeader
from delivery.message.headers import (
    LINE_ENDS,
    encoded_address,
    feedback_header,
    filename_parameters,
    folded_list,
    link_header,
    parameterised,
    text_header,
)
from delivery.message.text import text_of_html

CRLF = "\r\n"
FOLD_LINE = ";\r\n "
# Not "All", which is what most senders write: that asks Exchange for no bounces either.
# docs/decisions/0018.
SUPPRESSED_RESPONSES = ("X-Auto-Response-Suppress", "OOF, AutoReply")
# RFC 2045, section 6.4: what has parts of its own may not be encoded, so it travels as bytes with a name.
COMPOSITE = ("multipart/", "message/")
OPAQUE = "application/octet-stream"


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
class OutgoingMessage:
    """What one recipient gets, footer and tracking in it.

    date is the same on every attempt; message_id has its angle brackets. unsubscribe_url is an http or https
    URL in ASCII that takes one-click posts (RFC 8058). feedback_id is `a:b:c:SenderId`, at most three fields and
    a sender of 5 to 15 characters, and never personal.
    """

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
    unsubscribe_url: str | None = None
    feedback_id: str | None = None


def compose(letter: OutgoingMessage) -> bytes:
    """Return the message, CRLF line ends, 7-bit. Raises UnsafeHeader.

    Holds little more than the message itself, however large the files are.
    """
    message = io.BytesIO()
    message.write(CRLF.join([*_headers(letter), ""]).encode("ascii"))
    message.writelines(_body(letter))
    message.write(b"\r\n")
    return message.getvalue()


def _headers(letter: OutgoingMessage) -> Iterator[str]:
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
    if letter.unsubscribe_url:
        yield link_header("List-Unsubscribe", letter.unsubscribe_url)
        yield "List-Unsubscribe-Post: List-Unsubscribe=One-Click"
    if letter.feedback_id:
        yield feedback_header(letter.feedback_id)
    yield "Auto-Submitted: auto-generated"
    for name, value in _own_headers(letter):
        yield text_header(name, value)
    yield "MIME-Version: 1.0"


def _own_headers(letter: OutgoingMessage) -> Iterator[tuple[str, str]]:
    name, _ = SUPPRESSED_RESPONSES
    if name.lower() not in {given.lower() for given, _ in letter.headers}:
        yield SUPPRESSED_RESPONSES
    yield from letter.headers


def _mailboxes(name: str, mailboxes: tuple[Mailbox, ...]) -> str:
    return folded_list(name, [encoded_address(mailbox.name, mailbox.spec) for mailbox in mailboxes])


def _body(letter: OutgoingMessage) -> Iterable[bytes]:
    """Nest mixed(related(alternative(text, html), inline images), attachments); what is not needed is left out."""
    inline = [file for file in letter.files if file.content_id and letter.html]
    attached = [file for file in letter.files if not (file.content_id and letter.html)]
    body = _texts(letter)
    if inline:
        # RFC 2387 requires the type of the first part here.
        parts = [body, *(_file(file, disposition="inline") for file in inline)]
        body = _multipart(letter, 'related; type="multipart/alternative"', parts)
    if attached:
        body = _multipart(letter, "mixed", [body, *(_file(file, disposition="attachment") for file in attached)])
    return body


def _texts(letter: OutgoingMessage) -> Iterable[bytes]:
    if not letter.html:
        # compose() ends the last line.
        return _text("plain", letter.text if letter.files else letter.text.removesuffix("\n").removesuffix("\r"))
    plain = _text("plain", letter.text or text_of_html(letter.html))
    return _multipart(letter, "alternative", [plain, _text("html", letter.html)])


def _multipart(letter: OutgoingMessage, subtype: str, parts: Iterable[Iterable[bytes]]) -> Iterator[bytes]:
    # Made from the Message-ID, so that every attempt has the same bytes; "=_" never occurs in base64, nor in
    # quoted-printable.
    boundary = f"=_{hashlib.sha256(f'{subtype}{letter.message_id}'.encode()).hexdigest()[:32]}"
    yield f'Content-Type: multipart/{subtype};\r\n boundary="{boundary}"\r\n'.encode()
    # The line end in front of the first one is the empty line after the headers.
    for part in parts:
        yield f"\r\n--{boundary}\r\n".encode()
        yield from part
    yield f"\r\n--{boundary}--".encode()


def _text(subtype: str, text: str) -> Iterator[bytes]:
    encoding, pieces = encode_text(text)
    yield f"Content-Type: text/{subtype}; charset=utf-8\r\nContent-Transfer-Encoding: {encoding}\r\n\r\n".encode()
    yield from pieces


def _file(file: File, *, disposition: str) -> Iterator[bytes]:
    yield CRLF.join([*_file_headers(file, disposition), "Content-Transfer-Encoding: base64", "", ""]).encode("ascii")
    yield from encode_bytes(file.data)


def _file_headers(file: File, disposition: str) -> Iterator[str]:
    yield parameterised("Content-Type", _content_type(file))
    yield FOLD_LINE.join([f"Content-Disposition: {disposition}", *filename_parameters(file.filename)])
    if file.content_id and disposition == "inline":
        if LINE_ENDS.search(file.content_id):
            raise UnsafeHeader("a content id may not contain line ends")
        yield f"Content-ID: <{file.content_id}>"


def _content_type(file: File) -> str:
    lower = file.content_type.lower()
    if lower.startswith(COMPOSITE):
        return OPAQUE
    if lower.startswith("text/") and "charset" not in lower and _is_unicode(file.data):
        return f"{file.content_type}; charset=utf-8"
    return file.content_type


def _is_unicode(data: bytes) -> bool:
    """Tell whether a reader needs to be told: text without a charset counts as ASCII (RFC 2046, section 4.1.2)."""
    if data.isascii():
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
