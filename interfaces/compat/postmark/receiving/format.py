"""Received emails in the format of Postmark's inbound webhook: https://postmarkapp.com/developer/webhooks/inbound-webhook."""

import base64
import json
from collections.abc import Mapping
from typing import Any

from core.lib.ids import uuid_text
from events.kinds import EventBody
from receiving.inlining import (
    InlinedEmail,
    Mailboxes,
    hash_of,
    header_fields,
    load_inlined,
    mailbox_list,
    measure_email,
    with_fields,
)
from webhooks.formats import LargeBody, RequestBody

# The names of the stream in the payload.
STREAM = "inbound"
SPAM_FIELDS = ("x-spam-status", "x-spam-score", "x-spam-tests", "x-spam-checker-version", "x-spam-flag", "x-spam-level")
# Postmark gives these as members of their own.
MEMBER_FIELDS = (
    "from", "to", "cc", "bcc", "subject", "date", "reply-to", "return-path", "content-type",
    "content-transfer-encoding", *SPAM_FIELDS,
)  # fmt: skip


def inbound_payload(email: InlinedEmail) -> dict[str, Any]:
    """Return the payload of a received email."""
    resource = email.resource
    payload = {
        **message_members(resource),
        "MessageStream": STREAM,
        "Date": email.header_text("Date"),
        "TextBody": resource["text"],
        "HtmlBody": resource["html"],
        "StrippedTextReply": resource["replyText"] or "",
        "Headers": header_members(email),
        "Attachments": [
            {
                "Name": file.filename,
                "Content": base64.b64encode(file.data).decode(),
                "ContentType": file.entry["contentType"],
                "ContentLength": len(file.data),
                **({"ContentID": file.entry["contentId"]} if file.entry["contentId"] else {}),
            }
            for file in email.files
        ],
    }
    if email.source is not None:
        source = with_fields(email.source, spam_fields(resource), without=SPAM_FIELDS)
        payload["RawEmail"] = source.decode("utf-8", "replace")
    return payload


def message_members(resource: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members that a message has everywhere, from its resource in `/v1`."""
    sender = resource["from"] or {"email": "", "name": ""}
    return {
        "FromName": sender["name"],
        "From": sender["email"],
        "FromFull": _full(sender),
        **_recipients(resource),
        "OriginalRecipient": resource["recipient"],
        "Subject": resource["subject"],
        "MessageID": uuid_text(resource["id"], prefix="inb_"),
        "ReplyTo": mailbox_list(resource["replyTo"]),
        "MailboxHash": resource["tag"],
        "Tag": "",
    }


def header_members(email: InlinedEmail) -> list[dict[str, str]]:
    """Return the header fields: the sender of the envelope, the result of the spam filter, and those of the message."""
    return_path = ("Return-Path", f"<{email.resource['envelopeFrom']}>")
    fields = [return_path, *spam_fields(email.resource), *header_fields(email.resource, without=MEMBER_FIELDS)]
    return [{"Name": name, "Value": value} for name, value in fields]


def spam_fields(resource: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the header fields with the result of the spam filter; none without one."""
    spam = resource["spam"]
    if not spam:
        return []
    status = "Yes" if spam["isSpam"] else "No"
    return [
        ("X-Spam-Status", status),
        ("X-Spam-Score", str(spam["score"])),
        ("X-Spam-Tests", ",".join(spam["symbols"])),
    ]


def _recipients(resource: Mapping[str, Any]) -> dict[str, Any]:
    """Return To, Cc and Bcc; the recipient is in Bcc if the header does not name it."""
    named = {mailbox["email"].lower() for mailbox in (*resource["to"], *resource["cc"])}
    is_hidden = resource["recipient"].lower() not in named
    hidden = [{"email": resource["recipient"], "name": ""}] if is_hidden else []
    members: dict[str, Any] = {}
    for name, mailboxes in (("To", resource["to"]), ("Cc", resource["cc"]), ("Bcc", hidden)):
        members[name] = mailbox_list(mailboxes)
        members[f"{name}Full"] = full_list(mailboxes)
    return members


def full_list(mailboxes: Mailboxes) -> list[dict[str, str]]:
    return [_full(mailbox) for mailbox in mailboxes]


def _full(mailbox: Mapping[str, str]) -> dict[str, str]:
    return {"Email": mailbox["email"], "Name": mailbox["name"], "MailboxHash": hash_of(mailbox["email"])}


def _render(event: EventBody, secret: str, timestamp: int) -> RequestBody | None:
    email = load_inlined(event["data"])
    if email is None:
        return None
    return RequestBody(json.dumps(inbound_payload(email), ensure_ascii=False, separators=(",", ":")).encode())


RECEIVED_BODY = LargeBody(measure_email, _render)
