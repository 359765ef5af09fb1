"""Outgoing messages and their composition: RFC 5322 headers and 7-bit MIME parts, with lines within their limits.

Composition is pure: the same OutgoingMessage gives the same bytes on every attempt, including the signature.
See docs/decisions/0008.
"""

import hashlib
import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from enum import StrEnum

from core.delivery.message.dkim import SigningKey, sign
from core.delivery.message.encoding import encode_bytes, encode_text
from core.delivery.message.errors import UnsafeHeader
from core.delivery.message.headers import (
    LINE_ENDS,
    downgraded_address,
    encoded_address,
    feedback_header,
    filename_parameters,
    folded_list,
    header_with_parameters,
    international_address,
    link_header,
    text_header,
)
from core.delivery.message.text import html_to_text
from core.delivery.recipients import Diversion
from core.lib.email_addresses import Address
from core.lib.mail.transfer_encodings import has_long_line

CRLF = "\r\n"
FOLD_LINE = ";\r\n "
# Not "All", the usual value: it also asks Exchange to send no bounces. See docs/decisions/0018.
SUPPRESSED_RESPONSES = ("X-Auto-Response-Suppress", "OOF, AutoReply")
# RFC 2045, section 6.4: composite types must not be encoded. Messages that need no encoding are sent as they are,
# other files of these types as application/octet-stream (docs/decisions/0173).
COMPOSITE = ("multipart/", "message/")
OCTET_STREAM = "application/octet-stream"
# The kinds of multipart/report (RFC 6522) by the type of their second part.
REPORTS = {
    "message/disposition-notification": "disposition-notification",
    "message/delivery-status": "delivery-status",
    "message/feedback-report": "feedback-report",
}
MESSAGES = frozenset({"message/rfc822", "message/global", *REPORTS})
# RFC 5322, section 2.1.1.
MAX_LINE = 998
# RFC 8551, section 3.2.1: some programs read the name of these files here only.
NAMED_TYPES = frozenset(
    {
        *("application/pkcs7-mime", "application/x-pkcs7-mime"),
        *("application/pkcs7-signature", "application/x-pkcs7-signature"),
    }
)
# Composing and signing so much takes about 5 ms.
LARGE_TEXT = 48 * 1024
LARGE_FILES = 256 * 1024


class Placement(StrEnum):
    """The place of a file in a message.

    ALTERNATIVE: beside text and HTML, such as an invitation to a meeting.
    WHOLE: the only content, passed on unchanged, such as a signed or encrypted message.
    """

    ATTACHED = "attached"
    ALTERNATIVE = "alternative"
    WHOLE = "whole"


@dataclass(frozen=True)
class File:
    """An attachment. With a content_id it is an inline image of the HTML."""

    filename: str
    content_type: str
    data: bytes
    content_id: str | None = None
    placement: Placement = Placement.ATTACHED

    @property
    def kind(self) -> str:
        """Return the media type without parameters, in lower case."""
        return self.content_type.partition(";")[0].strip().lower()


def whole_file(files: Iterable[File]) -> File | None:
    """Return the file that is the whole content of a message, if there is one."""
    return next((file for file in files if file.placement is Placement.WHOLE), None)


@dataclass(frozen=True, kw_only=True)
class OutgoingMessage:
    """One message for one recipient, with footer and tracking. SMTP sends its bytes; a provider's API takes its fields.

    return_path, recipient: the addr-specs of the envelope (MAIL FROM, RCPT TO).
    message_id: with angle brackets.
    date: the same on every attempt.
    unsubscribe_url: an ASCII http or https URL that accepts one-click posts (RFC 8058).
    list_id: the identifier of a bulk stream (RFC 2919), without angle brackets.
    feedback_id: `a:b:c:SenderId`, at most three fields and a sender of 5 to 15 characters, without personal data.
    key: None leaves the message unsigned.
    requires_tls: sent only over verified TLS.
    asks_for_requiretls: the email itself requires TLS, also of the hosts after the next one (RFC 8689).
    attempt: the current one, from 1.
    last_reason: the reason of the attempt before.
    last_reply_age: the time since the attempt before.
    tags, metadata: passed to providers only, never part of the message.
    is_test: never sent (core.delivery.transports.simulator).
    route: the name of its route, empty for the usual one.
    transport: the name of the one that is assigned to it, if any.
    is_pinned: this transport may have taken the message at an earlier attempt, so that no other may get it.
    released_for: the number of the pair of source and receiver for which it was released; 0 if for none.
    has_waited: it waited for the pace of a receiver for as long as its route permits.
    stream: its workspace and stream, whose messages keep a source address.
    diversion: where it goes in place of its recipient; None for the recipient.
    """

    return_path: str
    recipient: str
    message_id: str
    date: datetime
    sender: Address
    to: tuple[Address, ...]
    cc: tuple[Address, ...] = ()
    reply_to: tuple[Address, ...] = ()
    subject: str
    html: str = ""
    text: str
    headers: tuple[tuple[str, str], ...] = ()
    files: tuple[File, ...] = ()
    unsubscribe_url: str | None = None
    list_id: str | None = None
    feedback_id: str | None = None
    key: SigningKey | None = None
    requires_tls: bool = False
    asks_for_requiretls: bool = False
    attempt: int = 1
    last_reason: str = ""
    last_reply_age: timedelta = timedelta()
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    is_test: bool = False
    route: str = ""
    transport: str = ""
    is_pinned: bool = False
    released_for: int = 0
    has_waited: bool = False
    stream: str = ""
    diversion: Diversion | None = None

    @property
    def is_whole(self) -> bool:
        """Return whether its content is passed on unchanged, which no provider's API can."""
        return whole_file(self.files) is not None

    @property
    def waives_tls_policies(self) -> bool:
        """Whether the sender prefers a delivery to the TLS policies of the recipient's domain (RFC 8689, section 5)."""
        waived = any(name.lower() == "tls-required" and value.strip().lower() == "no" for name, value in self.headers)
        return waived and not self.requires_tls

    @property
    def is_large(self) -> bool:
        """Return whether composing the message may take more than 5 ms."""
        return len(self.html) + len(self.text) > LARGE_TEXT or sum(len(f.data) for f in self.files) > LARGE_FILES

    def to_bytes(self) -> bytes:
        """Return the composed message, signed at its date if it has a key. Raises UnsafeHeader."""
        composed = compose(self)
        return sign(composed, key=self.key, at=self.date) if self.key else composed


def compose(message: OutgoingMessage) -> bytes:
    """Return the message with CRLF line ends, in 7 bits unless its recipient's address is internationalized.

    Raises UnsafeHeader.

    Needs little more memory than the message itself, however large the files are.
    """
    buffer = io.BytesIO()
    buffer.write(CRLF.join([*_headers(message), ""]).encode())
    buffer.writelines(_body(message))
    buffer.write(b"\r\n")
    return buffer.getvalue()


def _headers(message: OutgoingMessage) -> Iterator[str]:
    yield f"From: {encoded_address(message.sender.name, message.sender.spec)}"
    if message.to:
        yield _recipients("To", message.to, message.recipient)
    if message.cc:
        yield _recipients("Cc", message.cc, message.recipient)
    if message.reply_to:
        yield folded_list("Reply-To", [encoded_address(mailbox.name, mailbox.spec) for mailbox in message.reply_to])
    yield text_header("Subject", message.subject)
    yield f"Date: {format_datetime(message.date.astimezone(UTC))}"
    yield f"Message-ID: {message.message_id}"
    if message.unsubscribe_url:
        yield link_header("List-Unsubscribe", message.unsubscribe_url)
        yield "List-Unsubscribe-Post: List-Unsubscribe=One-Click"
    if message.list_id:
        yield text_header("List-Id", f"<{message.list_id}>")
    if message.feedback_id:
        yield feedback_header(message.feedback_id)
    yield "Auto-Submitted: auto-generated"
    for name, value in _custom_headers(message):
        yield text_header(name, value)
    yield "MIME-Version: 1.0"


def _custom_headers(message: OutgoingMessage) -> Iterator[tuple[str, str]]:
    name, _ = SUPPRESSED_RESPONSES
    if name.lower() not in {custom.lower() for custom, _ in message.headers}:
        yield SUPPRESSED_RESPONSES
    yield from message.headers


def _recipients(name: str, mailboxes: tuple[Address, ...], recipient: str) -> str:
    """Return the header of visible recipients; only an internationalized recipient gets others in UTF-8."""
    encode = downgraded_address if recipient.isascii() else international_address
    return folded_list(name, [encode(mailbox.name, mailbox.spec) for mailbox in mailboxes])


def _body(message: OutgoingMessage) -> Iterable[bytes]:
    """Nest mixed(related(alternative(text, html), inline images), attachments), omitting levels with one part."""
    if whole := whole_file(message.files):
        return _whole(whole)
    files = [file for file in message.files if file.placement is Placement.ATTACHED]
    inline = [file for file in files if file.content_id and message.html]
    attached = [file for file in files if not (file.content_id and message.html)]
    body = _text_parts(message)
    if inline:
        # RFC 2387 requires the type of the first part here.
        parts = [body, *(_file(file, disposition="inline") for file in inline)]
        body = _multipart(message, 'related; type="multipart/alternative"', parts)
    if attached:
        subtype = _report_type(attached[0]) or "mixed"
        body = _multipart(message, subtype, [body, *(_file(file, disposition="attachment") for file in attached)])
    return body


def _report_type(file: File) -> str | None:
    """Return the subtype of a report whose second part is the file, None for other files."""
    is_report = file.kind in REPORTS and _unencoded(file) is not None
    return f"report; report-type={REPORTS[file.kind]}" if is_report else None


def _whole(file: File) -> Iterator[bytes]:
    """Yield a body that is passed on unchanged: a signature covers the bytes of its parts."""
    if not file.content_type.lower().startswith("multipart/"):
        yield from _file(file, disposition="attachment")
        return
    yield f"{header_with_parameters('Content-Type', file.content_type)}\r\n\r\n".encode("ascii")
    yield file.data


def _text_parts(message: OutgoingMessage) -> Iterable[bytes]:
    alternatives = [file for file in message.files if file.placement is Placement.ALTERNATIVE]
    if not message.html and not alternatives:
        # compose() adds the last line end.
        return _text(
            "plain",
            message.text if message.files else message.text.removesuffix("\n").removesuffix("\r"),
        )
    plain = _text("plain", message.text or html_to_text(message.html))
    html = [_text("html", message.html)] if message.html else []
    # A mail program shows the last alternative that it knows. One that knows calendars shows an invitation with its
    # text or HTML; all other types are shown instead of it.
    last = [_alternative(file) for file in alternatives if file.content_type.lower().startswith("text/calendar")]
    first = [_alternative(file) for file in alternatives if not file.content_type.lower().startswith("text/calendar")]
    return _multipart(message, "alternative", [plain, *first, *html, *last])


def _multipart(message: OutgoingMessage, subtype: str, parts: Iterable[Iterable[bytes]]) -> Iterator[bytes]:
    # Derived from the Message-ID, so that every attempt has the same bytes. "=_" never occurs in base64 or
    # quoted-printable.
    boundary = f"=_{hashlib.sha256(f'{subtype}{message.message_id}'.encode()).hexdigest()[:32]}"
    yield f'Content-Type: multipart/{subtype};\r\n boundary="{boundary}"\r\n'.encode()
    # The line end before the first boundary is the empty line after the headers.
    for part in parts:
        yield f"\r\n--{boundary}\r\n".encode()
        yield from part
    yield f"\r\n--{boundary}--".encode()


def _text(subtype: str, text: str) -> Iterator[bytes]:
    encoding, pieces = encode_text(text)
    yield f"Content-Type: text/{subtype}; charset=utf-8\r\nContent-Transfer-Encoding: {encoding}\r\n\r\n".encode()
    yield from pieces


def _alternative(file: File) -> Iterator[bytes]:
    yield header_with_parameters("Content-Type", _content_type(file)).encode("ascii")
    yield b"\r\nContent-Transfer-Encoding: base64\r\n\r\n"
    yield from encode_bytes(file.data)


def _file(file: File, *, disposition: str) -> Iterator[bytes]:
    unencoded = _unencoded(file)
    if unencoded is None:
        headers = _file_headers(file, _content_type(file), disposition)
        yield CRLF.join([*headers, "Content-Transfer-Encoding: base64", "", ""]).encode("ascii")
        yield from encode_bytes(file.data)
        return
    headers = _file_headers(file, file.content_type, disposition)
    yield CRLF.join([*headers, "Content-Transfer-Encoding: 7bit", "", ""]).encode("ascii")
    yield unencoded


def _unencoded(file: File) -> bytes | None:
    """Return an attached message with CRLF line ends; None for other files, and if it is unfit for 7 bits.

    It cannot contain the boundary, which is derived from the later id of the message around it.
    """
    if file.kind not in MESSAGES or not file.data.isascii():
        return None
    lines = file.data.replace(b"\r\n", b"\n")
    data = lines.replace(b"\n", b"\r\n")
    if not lines or b"\r" in lines or b"\0" in lines or has_long_line(data, MAX_LINE):
        return None
    return data


def _file_headers(file: File, content_type: str, disposition: str) -> Iterator[str]:
    filename = filename_parameters(file.filename)
    if file.kind in NAMED_TYPES and filename[0].startswith('filename="'):
        content_type += f"; {filename[0].removeprefix('file')}"
    yield header_with_parameters("Content-Type", content_type)
    if file.kind not in REPORTS:
        yield FOLD_LINE.join([f"Content-Disposition: {disposition}", *filename])
    if file.content_id and disposition == "inline":
        if LINE_ENDS.search(file.content_id):
            raise UnsafeHeader("a content id must not contain line ends")
        yield f"Content-ID: <{file.content_id}>"


def _content_type(file: File) -> str:
    lower = file.content_type.lower()
    if lower.startswith(COMPOSITE):
        return OCTET_STREAM
    if lower.startswith("text/") and "charset" not in lower and _is_unicode(file.data):
        return f"{file.content_type}; charset=utf-8"
    return file.content_type


def _is_unicode(data: bytes) -> bool:
    """Return whether text needs charset=utf-8: without a charset it counts as ASCII (RFC 2046, section 4.1.2)."""
    if data.isascii():
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
