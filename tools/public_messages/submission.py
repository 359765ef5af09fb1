"""Submission of a public message: the email that it becomes, composed as for delivery, without a database."""

import re
from datetime import UTC, datetime

from core.delivery.message.compose import OutgoingMessage, compose
from core.delivery.message.text import html_to_text
from core.lib.email_addresses import Address
from emails.accept.drafts import Draft
from interfaces.submission.drafts import read_email

RECIPIENT = Address("", "ada@example.com")
ENVELOPE_LINE = re.compile(rb"\A>?From [^\n]*\n")
SENDER = re.compile(rb"^From[ \t]*:[^\n]*\n(?:[ \t][^\n]*\n)*", re.IGNORECASE | re.MULTILINE)
END_OF_HEADER = re.compile(rb"\n\r?\n")


def as_submitted(source: bytes) -> bytes:
    """Return a message with CRLF, and with a sender of this installation."""
    lines = ENVELOPE_LINE.sub(b"", source.replace(b"\r\n", b"\n").replace(b"\r", b"\n"))
    end = END_OF_HEADER.search(lines)
    size = end.start() + 1 if end else len(lines)
    return (b"From: hi@alice.example\n" + SENDER.sub(b"", lines[:size]) + lines[size:]).replace(b"\n", b"\r\n")


def composed(source: bytes) -> bytes:
    """Return the message that is sent for a submitted one. Raises Refused."""
    return compose(_outgoing(read_email(source, recipients=(RECIPIENT,)).draft))


def _outgoing(draft: Draft) -> OutgoingMessage:
    return OutgoingMessage(
        return_path="bounce@alice.example",
        recipient=RECIPIENT.spec,
        message_id="<1@alice.example>",
        date=datetime(2026, 11, 20, 9, 12, 29, tzinfo=UTC),
        sender=draft.sender,
        to=draft.to,
        cc=draft.cc,
        reply_to=draft.reply_to,
        subject=draft.subject or "",
        html=draft.html,
        text=draft.text or (html_to_text(draft.html) if draft.html else ""),
        headers=tuple(draft.headers.items()),
        files=draft.files,
    )
