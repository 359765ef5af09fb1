"""Reading a received message: its fields, texts and attachments, within the bounds of docs/decisions/0230.

Tolerant: what cannot be read is listed, and the rest is read. Archives are never opened.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypedDict

from core.delivery.message.text import html_to_text
from core.lib.ids import new_id
from core.lib.mail.address_lists import Mailbox
from core.lib.mail.charsets import decode_tolerantly
from core.lib.mail.header_fields import MessageField
from core.lib.mail.mime import MalformedMime, MimePart, MimePolicy, TooManyParts, read_message
from receiving.reading.automatic import classify_message, is_report
from receiving.reading.budget import ProcessorBudget
from receiving.reading.fields import (
    HeaderFields,
    clean,
    decode_field,
    read_addresses,
    read_date,
    read_message_id,
    read_references,
    read_subject,
)
from receiving.reading.quotes import find_reply, find_reply_in_html
from receiving.states import Automatic

MAX_DEPTH = 20
MAX_PARTS = 250
MAX_FIELDS = 400
MAX_HEADER_BYTES = 128 * 1024
TEXT_BYTES = 5 * 1024 * 1024
MAX_FILENAME = 255
MAX_TYPE = 255
MAX_ERRORS = 20
MAX_ERROR_LENGTH = 200
# The HTML from which a text is made.
HTML_TO_TEXT_LENGTH = 1024 * 1024
KINDS = {"text/plain": "text", "text/html": "html"}
# By the names of the resource.
ADDRESS_FIELDS = {"from": "from", "to": "to", "cc": "cc", "replyTo": "reply-to"}
# The verdict of DMARC is permerror then (docs/decisions/0273).
AMBIGUOUS_SENDER = "The sender in From is ambiguous"
DECODED = frozenset({"base64", "quoted-printable"})


@dataclass(frozen=True)
class ReceivedPolicy(MimePolicy):
    """The bounds of received messages. errors: what was dropped because of them, or could not be read."""

    errors: list[str] = field(default_factory=list)

    def refuse(self, problem: str) -> None:
        if len(self.errors) < MAX_ERRORS and problem not in self.errors:
            self.errors.append(clean(problem)[:MAX_ERROR_LENGTH])


class ReadAttachment(TypedDict):
    """An entry of Message.attachments.

    start, end: the place of its content in the source.
    encoding: the transfer encoding of that content; binary if none is given.
    """

    id: str
    filename: str
    contentType: str
    size: int
    contentId: str | None
    inline: bool
    method: str | None
    sha256: str
    start: int
    end: int
    encoding: str


@dataclass
class Reading:
    """The result of reading a message.

    mailboxes: by the names of the resource.
    senders: the addresses in From; none if programs may read others there.
    """

    headers: list[list[str]]
    subject: str
    senders: list[Mailbox]
    mailboxes: dict[str, list[Mailbox]]
    date: datetime | None
    message_id: str
    in_reply_to: str
    references: list[str]
    automatic: Automatic
    text: str = ""
    html: str = ""
    text_generated: bool = False
    reply_text: str | None = None
    truncated: list[str] = field(default_factory=list)
    attachments: list[ReadAttachment] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @property
    def sender(self) -> str:
        """The address of the first mailbox in From, in lower case."""
        return next((mailbox.email.lower() for mailbox in self.mailboxes["from"]), "")


def read_received(source: bytes, *, envelope_from: str, budget: ProcessorBudget) -> Reading:
    """Read a message. Raises TooExpensive if the budget is used up."""
    message, policy = _open(source)
    reading = _read_fields(message.fields, policy, envelope_from)
    budget.check()
    for part in _leaves(message, policy):
        _read_part(part, reading, is_whole=part is message)
        # Also of a report to which a gateway has added a text.
        if part.parent and is_report(part.parent.kind):
            reading.automatic = Automatic.AUTO_GENERATED
        budget.check()
    _finish_texts(reading, budget)
    return reading


def read_header(source: bytes, *, envelope_from: str) -> Reading:
    """Read the header of a message alone."""
    message, policy = _open(source)
    return _read_fields(message.fields, policy, envelope_from)


def _open(source: bytes) -> tuple[MimePart, ReceivedPolicy]:
    policy = ReceivedPolicy(
        max_bytes=len(source),
        max_header_bytes=MAX_HEADER_BYTES,
        max_fields=MAX_FIELDS,
        max_depth=MAX_DEPTH,
        max_parts=MAX_PARTS,
    )
    return read_message(source, policy), policy


def _read_fields(fields: tuple[MessageField, ...], policy: ReceivedPolicy, envelope_from: str) -> Reading:
    named = HeaderFields(fields)
    subject = read_subject(named.first("subject"))
    lists = {name: read_addresses(fields, name=header) for name, header in ADDRESS_FIELDS.items()}
    if not lists["from"].is_exact:
        policy.refuse(AMBIGUOUS_SENDER)
    return Reading(
        headers=[[field.name, decode_field(field)] for field in fields],
        subject=subject,
        senders=list(lists["from"].mailboxes) if lists["from"].is_exact else [],
        mailboxes={name: list(found.mailboxes) for name, found in lists.items()},
        date=read_date(named.first("date")),
        message_id=read_message_id(named.first("message-id")),
        in_reply_to=read_message_id(named.first("in-reply-to")),
        references=read_references(named.all("references")),
        automatic=classify_message(named.all, subject=subject, envelope_from=envelope_from),
        errors=policy.errors,
    )


def _leaves(message: MimePart, policy: ReceivedPolicy) -> Iterator[MimePart]:
    """Yield the parts with content; those behind the last one that is read are dropped."""
    try:
        for part in message.walk():
            if not part.is_container:
                yield part
    except TooManyParts as error:
        policy.refuse(str(error))


def _read_part(part: MimePart, reading: Reading, *, is_whole: bool) -> None:
    """Add a part to the texts of a message if it is the first of its kind, else to its attachments."""
    name = KINDS.get(part.kind, "")
    is_text = name and part.disposition != "attachment" and (is_whole or not part.filename)
    if is_text and not getattr(reading, name):
        text, is_cut = _read_text(part, reading)
        setattr(reading, name, text)
        if is_cut:
            reading.truncated.append(name)
        return
    # A multipart without parts has an empty text in front of everything.
    if part.end > part.start or part.filename or not is_text:
        reading.attachments.append(_attachment(part, reading))


def _read_text(part: MimePart, reading: Reading) -> tuple[str, bool]:
    """Return the text of a part with LF at line ends, and whether it was cut."""
    data, _ = _decode(part, reading)
    text = decode_tolerantly(data, part.charset, kind=part.kind).replace("\r\n", "\n").replace("\r", "\n")
    shorter = cut_text(text, TEXT_BYTES)
    return shorter, len(shorter) < len(text)


def cut_text(text: str, limit: int) -> str:
    """Return the first characters of a text that have at most `limit` bytes in UTF-8."""
    return text.encode()[:limit].decode("utf-8", "ignore") if len(text) * 4 > limit else text


def _decode(part: MimePart, reading: Reading) -> tuple[bytes, str]:
    """Return the content of a part and its transfer encoding; the body if it cannot be decoded."""
    encoding = part.encoding
    try:
        return part.content, encoding if encoding in DECODED else "binary"
    except MalformedMime as error:
        part.policy.refuse(str(error))
        return part.body, "binary"


def _attachment(part: MimePart, reading: Reading) -> ReadAttachment:
    data, encoding = _decode(part, reading)
    content_type = part.content_fields.get("content-type", "").partition(";")[0].strip().lower() or part.kind
    is_inline = part.disposition == "inline" or (bool(part.content_id) and part.disposition != "attachment")
    return {
        "id": new_id("att_"),
        "filename": _filename(part.filename),
        "contentType": clean(content_type)[:MAX_TYPE],
        "size": len(data),
        "contentId": clean(part.content_id)[:MAX_FILENAME] or None,
        "inline": is_inline,
        "method": _calendar_method(part),
        "sha256": hashlib.sha256(data).hexdigest(),
        "start": part.start,
        "end": max(part.end, part.start),
        "encoding": encoding,
    }


def _calendar_method(part: MimePart) -> str | None:
    """Return the method of a calendar object (RFC 5546), such as REQUEST."""
    method = part.parameters.get("method", "") if part.kind == "text/calendar" else ""
    return clean(method)[:40].upper() or None


def _filename(text: str) -> str:
    """Return the name of a file without a path and control characters, at most MAX_FILENAME characters."""
    name = clean(text).replace("\\", "/").rpartition("/")[2]
    return "".join(character if character.isprintable() else "_" for character in name).strip()[:MAX_FILENAME]


def _finish_texts(reading: Reading, budget: ProcessorBudget) -> None:
    if reading.html and not reading.text:
        reading.text = html_to_text(reading.html[:HTML_TO_TEXT_LENGTH])
        reading.text_generated = True
        budget.check()
    if reading.text_generated:
        reading.reply_text = find_reply_in_html(reading.html[:HTML_TO_TEXT_LENGTH], reading.text)
    else:
        reading.reply_text = find_reply(reading.text)
    budget.check()
