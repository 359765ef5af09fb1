"""Received emails in Resend's API and webhooks: https://resend.com/docs/api-reference/emails/retrieve-received-email."""

from collections.abc import Mapping
from typing import Any

from core.lib.ids import uuid_text
from receiving.inlining import header_fields, mailbox_text
from receiving.models import ReceivedEmail
from receiving.rendering import ReceivedItemSerializer, ReceivedSerializer
from receiving.source import html_with_images

Received = dict[str, Any]


def received_data(email: Mapping[str, Any]) -> Received:
    """Return the data of a webhook, from the resource of an email in `/v1`."""
    return {
        "email_id": uuid_text(email["id"], prefix="inb_"),
        "created_at": email["receivedAt"],
        **_members(email),
        "attachments": [attachment_item(entry) for entry in email["attachments"]],
    }


def received_item(email: ReceivedEmail) -> Received:
    """Return an email in a list."""
    return _item(ReceivedItemSerializer(email).data)


def received_resource(email: ReceivedEmail, *, has_images: bool) -> Received:
    """Return an email. has_images: whether its HTML contains the images that the message brought."""
    resource = ReceivedSerializer(email).data
    html = html_with_images(email.message) if has_images else resource["html"]
    return {
        "object": "email",
        **_item(resource),
        "html": html or None,
        "html_format": "data_uri" if has_images else "cid",
        "text": resource["text"] or None,
        "headers": _headers(resource),
        "raw": {"download_url": resource["raw"]["url"], "expires_at": resource["raw"]["urlExpiresAt"]},
    }


def _item(resource: Mapping[str, Any]) -> Received:
    return {
        "id": uuid_text(resource["id"], prefix="inb_"),
        "created_at": resource["receivedAt"],
        **_members(resource),
        "reply_to": [mailbox["email"] for mailbox in resource["replyTo"]],
        "attachments": [{**attachment_item(entry), "size": entry["size"]} for entry in resource["attachments"]],
    }


def _members(email: Mapping[str, Any]) -> Received:
    return {
        "from": mailbox_text(email["from"]) if email["from"] else "",
        **recipient_members(email),
        "received_for": [email["recipient"]],
        "message_id": email["messageId"] or "",
        "subject": email["subject"],
    }


def _headers(resource: Mapping[str, Any]) -> dict[str, str]:
    """Return the header fields by name; the texts of one that is repeated are one text, which clients expect."""
    texts: dict[str, list[str]] = {}
    for name, value in header_fields(resource):
        texts.setdefault(name.lower(), []).append(value)
    return {name: ", ".join(values) for name, values in texts.items()}


def recipient_members(email: Mapping[str, Any]) -> Received:
    """Return the addresses of the header; Bcc is never in one."""
    named = {name: [mailbox["email"] for mailbox in email[name]] for name in ("to", "cc")}
    return {**named, "bcc": []}


def attachment_item(entry: Mapping[str, Any]) -> Received:
    return {
        "id": uuid_text(entry["id"], prefix="att_"),
        "filename": entry["filename"] or None,
        "content_type": entry["contentType"],
        "content_disposition": "inline" if entry["inline"] else "attachment",
        "content_id": entry["contentId"],
    }


def attachment_resource(entry: Mapping[str, Any]) -> Received:
    """Return an attachment with its URL, from its entry in `/v1`."""
    return {
        **attachment_item(entry),
        "size": entry["size"],
        "download_url": entry["url"],
        "expires_at": entry["urlExpiresAt"],
    }
