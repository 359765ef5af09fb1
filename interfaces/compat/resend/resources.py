"""Resources of Resend's API, from rows and stored results."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from django.utils import timezone

from core.lib.datetimes import format_datetime
from core.lib.email_addresses import parse_address_list
from core.lib.ids import uuid_text
from emails.accept.idempotency import StoredResponse
from emails.listing.attachments import LINK_LIFETIME, attachment_url, id_of
from emails.models import Attachment, Email
from emails.rendered_content import render_email
from emails.states import EmailStatus
from interfaces.compat.resend.errors import error_message

Resource = dict[str, Any]
SUPPRESSED = frozenset({"recipient_suppressed", "recipient_not_allowed"})
# Resend's spelling of a status, where it differs.
# https://resend.com/docs/api-reference/emails/retrieve-email
LAST_EVENTS = {EmailStatus.CANCELLED: "canceled"}


def sent_id(stored: StoredResponse) -> Resource:
    (result,) = stored.body["results"]
    return {"id": uuid_text(result["id"])}


def sent_batch(stored: StoredResponse) -> Resource:
    """Return the ids of accepted emails, and the errors of the others if there are any."""
    results = list(enumerate(stored.body["results"]))
    data = [{"id": uuid_text(result["id"])} for _, result in results if "id" in result]
    errors = [
        {"index": index, "message": error_message(result["problem"])}
        for index, result in results
        if "problem" in result
    ]
    return {"data": data, "errors": errors} if errors else {"data": data}


def email_item(email: Email) -> Resource:
    """Return an email in a list."""
    return {
        "id": uuid_text(email.id),
        "to": email.to,
        "from": email.sender,
        "created_at": format_datetime(email.created_at),
        "subject": email.subject,
        "bcc": email.bcc or None,
        "cc": email.cc or None,
        "reply_to": [str(address) for address in parse_address_list(email.reply_to or "")] or None,
        "last_event": last_event(email),
        "message_id": _message_id(email),
        "scheduled_at": _time(email.scheduled_for),
    }


def email_resource(email: Email) -> Resource:
    content = render_email(email)
    return {
        "object": "email",
        **email_item(email),
        "html": content.html or None,
        "text": content.text or None,
        "tags": [dict(zip(("name", "value"), tag.partition(":")[::2], strict=True)) for tag in email.tags],
    }


def _message_id(email: Email) -> str:
    """Return the Message-ID of the first recipient's message."""
    return f"<{email.recipients.all()[0].id}@{email.from_domain}>"


def last_event(email: Email) -> str:
    status = EmailStatus(email.status)
    if status is EmailStatus.QUEUED and email.retry_count:
        return "delivery_delayed"
    if status is EmailStatus.FAILED and all(recipient.reason in SUPPRESSED for recipient in email.recipients.all()):
        return "suppressed"
    return LAST_EVENTS.get(status, status.value)


def attachment_resource(email: Email, attachment: Attachment) -> Resource:
    """Return an attachment with a URL that is valid for an hour."""
    expires_at = timezone.now() + LINK_LIFETIME
    return {
        "id": uuid_text(id_of(email, attachment), prefix="att_"),
        "filename": attachment.filename,
        "size": attachment.size,
        "content_type": attachment.content_type,
        "content_disposition": "inline" if attachment.cid else "attachment",
        "content_id": attachment.cid,
        "download_url": attachment_url(email, attachment, expires_at=expires_at),
        "expires_at": format_datetime(expires_at),
    }


def list_resource(rows: Iterable[Any], render: Callable[[Any], Resource], *, has_more: bool = False) -> Resource:
    return {"object": "list", "has_more": has_more, "data": [render(row) for row in rows]}


def _time(value: datetime | None) -> str | None:
    return format_datetime(value) if value else None
