"""Reading a received message: its fields, texts and attachments, within the bounds of docs/decisions/0230.

Tolerant: what cannot be read is listed, and the rest is read. Archives are never opened.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypedDict

from core.delivery.message.text import html_to_text
from core.lib.ids import new_id
from core.lib.mail.address_lists import Mailbox
from core.lib.mail.charsets import decode_tolerantly
from core.lib.mail.header_bounds import SKIPPED_CHARACTERS, SKIPPED_LINES
from core.lib.mail.header_fields import MessageField
from core.lib.mail.inline_texts import HTML, PLAIN, InlineTexts, join_texts, text_to_html
from core.lib.mail.mime import MimePart, read_message
from core.lib.mail.mime_policy import MalformedMime, MimePolicy, TooManyParts
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
# By the names of the resource.
ADDRESS_FIELDS = {"from": "from", "to": "to", "cc": "cc", "replyTo": "reply-to"}
# The verdict of DMARC is permerror then (docs/decisions/0273).
AMBIGUOUS_SENDER = "The sender in From is ambiguous"
DECODED = frozenset({"base64", "quoted-printable"})


@dataclass(frozen=True)
class ReceivedPolicy(MimePolicy):
    """The bounds of received messages. errors: what was dropped, could not be read, or was repaired."""

    errors: list[str] = field(default_factory=list)

    def refuse(self, problem: str) -> None:
        if len(self.errors) < MAX_ERRORS and problem not in self.errors:
            self.errors.append(clean(problem)[:MAX_ERROR_LENGTH])

    def repair(self, problem: str) -> None:
        self.refuse(problem)


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
    text_generated: the text, or a part of it, was made from HTML.
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
    texts = InlineTexts()
    named: list[MimePart] = []
    for part in _parts(message, policy):
        if part.is_container:
            texts.add(part)
        elif texts.accepts(part):
            texts.add(part, _read_text(part))
        else:
            reading.attachments.append(_attachment(part))
            named += [part] * texts.is_shown(part)
        # Also of a report to which a gateway has added a text.
        if part.parent and is_report(part.parent.kind):
            reading.automatic = Automatic.AUTO_GENERATED
        budget.check()
    if not texts.has(PLAIN) and not texts.has(HTML):
        for part in named[:1]:
            texts.add(part, _read_text(part))
    _read_texts(texts, reading, budget)
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
    is_certain = lists["from"].is_exact and not _is_header_doubtful(fields, policy)
    if not is_certain:
        policy.refuse(AMBIGUOUS_SENDER)
    for name, header in ADDRESS_FIELDS.items():
        if name != "from" and not lists[name].is_complete:
            policy.refuse(f"An address in {header.title()} was left out")
    return Reading(
        headers=[[field.name, decode_field(field)] for field in fields],
        subject=subject,
        senders=list(lists["from"].mailboxes) if is_certain else [],
        mailboxes={name: list(found.mailboxes) for name, found in lists.items()},
        date=read_date(named.first("date")),
        message_id=read_message_id(named.first("message-id")),
        in_reply_to=read_message_id(named.first("in-reply-to")),
        references=read_references(named.all("references")),
        automatic=classify_message(named.all, subject=subject, envelope_from=envelope_from),
        errors=policy.errors,
    )


def _is_header_doubtful(fields: tuple[MessageField, ...], policy: ReceivedPolicy) -> bool:
    """Return whether other programs read no From, since it was repaired or is behind lines that end a header."""
    is_first = any(field.name.lower() == "from" for field in fields[:1])
    return SKIPPED_LINES in policy.errors or (is_first and SKIPPED_CHARACTERS in policy.errors)


def _parts(message: MimePart, policy: ReceivedPolicy) -> Iterator[MimePart]:
    """Yield the parts; those behind the last one that is read are dropped."""
    try:
        yield from message.walk()
    except TooManyParts as error:
        policy.refuse(str(error))


def _read_text(part: MimePart) -> str:
    """Return the text of a part with LF at line ends, at most one character more than is kept."""
    data, _ = _decode(part)
    text = decode_tolerantly(data, part.charset, kind=part.kind).replace("\r\n", "\n").replace("\r", "\n")
    return text[: TEXT_BYTES + 1]


def cut_text(text: str, limit: int) -> str:
    """Return the first characters of a text that have at most `limit` bytes in UTF-8."""
    return text.encode()[:limit].decode("utf-8", "ignore") if len(text) * 4 > limit else text


def _decode(part: MimePart) -> tuple[bytes, str]:
    """Return the content of a part and its transfer encoding; the body if it cannot be decoded."""
    encoding = part.encoding
    try:
        return part.content, encoding if encoding in DECODED else "binary"
    except MalformedMime as error:
        part.policy.refuse(str(error))
        return part.body, "binary"


def _attachment(part: MimePart) -> ReadAttachment:
    data, encoding = _decode(part)
    word = part.content_type.word
    is_inline = part.disposition == "inline" or (bool(part.content_id) and part.disposition != "attachment")
    return {
        "id": new_id("att_"),
        "filename": _filename(part.filename),
        "contentType": clean(word if "/" in word else part.kind)[:MAX_TYPE],
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


def _read_texts(texts: InlineTexts, reading: Reading, budget: ProcessorBudget) -> None:
    """Set the texts: each has everything that a person reads, and HTML is not made from a text alone."""
    shown = texts.shown(PLAIN)
    text = join_texts(shown, kind=PLAIN, convert=_bounded_converter(budget), limit=TEXT_BYTES) or texts.blank(PLAIN)
    reading.text_generated = any(node.kind == HTML for node in shown)
    html = ""
    if texts.has(HTML):
        html = join_texts(texts.shown(HTML), kind=HTML, convert=text_to_html, limit=TEXT_BYTES)
    reading.text, reading.html = cut_text(text, TEXT_BYTES), cut_text(html, TEXT_BYTES)
    cuts = {"text": len(reading.text) < len(text), "html": len(reading.html) < len(html)}
    reading.truncated = [name for name, is_cut in cuts.items() if is_cut]
    budget.check()
    if reading.text_generated:
        reading.reply_text = find_reply_in_html(reading.html[:HTML_TO_TEXT_LENGTH], reading.text)
    else:
        reading.reply_text = find_reply(reading.text)
    budget.check()


def _bounded_converter(budget: ProcessorBudget) -> Callable[[str], str]:
    """Return a function that makes texts from HTML, up to HTML_TO_TEXT_LENGTH together."""
    left = HTML_TO_TEXT_LENGTH

    def convert(html: str) -> str:
        nonlocal left
        start, left = html[:left], max(left - len(html), 0)
        budget.check()
        return html_to_text(start)

    return convert
