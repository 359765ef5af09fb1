"""Records of sent emails in an export: emails to a person and naming them, their events, deliveries and requests."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Any
from uuid import UUID

from django.db.models import Q

from console.privacy.exporting.parts import PartWriter
from core.erasing.steps import ErasureScope
from core.lib.ids import from_uuid, to_uuid
from core.request_log.models import ApiRequest
from emails.models import Acceptance, Email, Recipient
from emails.rendered_content import render_email
from emails.sending.outgoing_messages import rebuild_message
from emails.upkeep.erasure import find_former_events, find_sent, scan_emails, scan_keys, scan_workspace_events
from events.models import Event
from webhooks.models import WebhookDelivery

# Each is rendered, and its messages are built.
EMAILS = 20
NOT_KEPT = "not kept"
TIMES = ("sent_at", "delivered_at", "opened_at", "clicked_at", "bounced_at")


def export_sent(scope: ErasureScope, place: Any, writer: PartWriter) -> Any:
    """Export a page of the emails to the person, with their messages; return the next place."""
    (address,) = scope.addresses
    found = find_sent(scope, address, after=to_uuid(place or from_uuid(UUID(int=0))), limit=EMAILS)
    recipients = defaultdict(list)
    for recipient in Recipient.objects.filter(email__in=map(from_uuid, found), address__iexact=address):
        recipients[recipient.email_id].append(recipient)
    for email in _emails(found):
        own = recipients[email.id]
        messages = [name for recipient in own if (name := _add_message(email, recipient, writer))]
        content = render_email(email)
        record = {
            **_describe(email),
            "recipients": [_describe_recipient(recipient) for recipient in own],
            "htmlContent": content.html if email.keeps_content else NOT_KEPT,
            "text": content.text if email.keeps_content else NOT_KEPT,
            "attachments": _attachments(email),
            "messages": messages if email.keeps_content else NOT_KEPT,
        }
        writer.add("emails", record, about=to_uuid(email.id))
    people = [recipient.id for own in recipients.values() for recipient in own]
    _add_events(found, writer, condition=Q(recipient=None) | Q(recipient__in=people))
    return from_uuid(found[-1]) if len(found) == EMAILS else None


def export_mentions(scope: ErasureScope, place: Any, writer: PartWriter) -> Any:
    """Export the fields of emails to others that name the person; not their content, which is about others."""
    (address,) = scope.addresses
    page = scan_emails(scope, place)
    ids = [from_uuid(id_) for id_ in page.named]
    own = set(Recipient.objects.filter(email__in=ids, address__iexact=address).values_list("email_id", flat=True))
    named = [to_uuid(id_) for id_ in ids if id_ not in own]
    for email in _emails(named):
        writer.add("emails", {**_describe(email), "recipients": []}, about=to_uuid(email.id))
    _add_events(named, writer, condition=Q(recipient=None))
    return page.place


def export_workspace_events(scope: ErasureScope, place: Any, writer: PartWriter) -> Any:
    """Export events about the person that belong to no email, such as suppressions."""
    if place is None:
        for event_id, kind, payload, created_at in find_former_events(scope):
            writer.add("events", {"id": event_id, "type": kind, "createdAt": created_at, "payload": payload})
    page = scan_workspace_events(scope, place)
    ids = [from_uuid(id_, prefix="evt_") for id_ in page.named]
    _write_events(Event.objects.filter(id__in=ids).order_by("number"), writer)
    add_deliveries(ids, writer)
    return page.place


def export_keys(scope: ErasureScope, place: Any, writer: PartWriter) -> Any:
    """Export idempotency keys with the address, without the stored responses, which may name others."""
    rows, next_place = scan_keys(scope, place)
    named = [id_ for _, id_, is_named, answer in rows if is_named or answer]
    for row in Acceptance.objects.filter(id__in=named).order_by("key"):
        writer.add("idempotencyKeys", {"key": row.key, "operation": row.operation, "createdAt": row.created_at})
    return next_place


def add_deliveries(event_ids: Collection[str], writer: PartWriter) -> None:
    """Add the deliveries of events to webhooks, with what was sent."""
    deliveries = WebhookDelivery.objects.filter(event__in=event_ids).select_related("event", "webhook")
    for one in deliveries.order_by("created_at", "id").iterator(chunk_size=200):
        record = {
            "id": one.id,
            "eventId": one.event_id,
            "url": one.webhook.url,
            "status": one.status,
            "createdAt": one.created_at,
            "succeededAt": one.succeeded_at,
            "body": one.event.body,
        }
        writer.add("webhookDeliveries", record)


def _emails(ids: Sequence[UUID]) -> Iterable[Email]:
    emails = Email.objects.filter(id__in=map(from_uuid, ids)).select_related("content", "template_version")
    return emails.order_by("created_at", "id").iterator(chunk_size=1)


def _add_message(email: Email, recipient: Recipient, writer: PartWriter) -> str:
    """Add what the person received or receives; return the name of the file, empty if there is none."""
    if not email.keeps_content:
        return ""
    recipient.email = email
    message, name = rebuild_message(recipient), f"emails/{recipient.id}.eml"
    return name if writer.add_file(name, [message], size=len(message)) else ""


def _describe(email: Email) -> dict[str, Any]:
    """Return the fields of an email that its erasure searches, without Bcc, which only the sender sees."""
    return {
        "id": email.id,
        "from": email.sender,
        "to": email.to,
        "cc": email.cc,
        "replyTo": email.reply_to,
        "subject": email.subject,
        "status": email.status,
        "stream": email.stream,
        "tags": email.tags,
        "metadata": email.metadata,
        "headers": email.headers,
        "templateId": email.template_id,
        "templateData": email.template_data if email.keeps_content else NOT_KEPT,
        "createdAt": email.created_at,
        "scheduledFor": email.scheduled_for,
        "expiresAt": email.expires_at,
    }


def _describe_recipient(recipient: Recipient) -> dict[str, Any]:
    times = {f"{name.removesuffix('_at')}At": getattr(recipient, name) for name in TIMES}
    return {
        "id": recipient.id,
        "type": recipient.kind,
        "email": recipient.address,
        "status": recipient.state,
        **times,
        "errorMessage": recipient.error_message,
        "reason": recipient.reason,
    }


def _attachments(email: Email) -> Any:
    if not email.keeps_content or email.content is None:
        return [] if email.keeps_content else NOT_KEPT
    files = email.content.attachments.values_list("filename", "content_type", "size")
    return [{"filename": name, "contentType": type_, "size": size} for name, type_, size in files]


def _add_events(email_ids: Sequence[UUID], writer: PartWriter, *, condition: Q) -> None:
    """Add the events of emails that meet a condition, with their deliveries, and the requests about the emails."""
    ids = [from_uuid(id_) for id_ in email_ids]
    events = Event.objects.filter(condition, email__in=ids).order_by("number")
    _write_events(events, writer)
    add_deliveries(list(events.values_list("id", flat=True)), writer)
    for request in ApiRequest.objects.filter(email_id__in=ids).order_by("id"):
        record = {"id": request.id, "emailId": request.email_id, "method": request.method, "path": request.path}
        writer.add("apiRequests", {**record, "status": request.status, "createdAt": request.created_at})


def _write_events(events: Any, writer: PartWriter) -> None:
    for event in events.iterator(chunk_size=500):
        record = {"id": event.id, "emailId": event.email_id, "type": event.kind, "createdAt": event.created_at}
        writer.add("events", {**record, "payload": event.shown_payload})
