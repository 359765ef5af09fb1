"""Webhook events of email providers, received by django-anymail's signal: stored first, processed later.

Providers may call before their API has answered the worker, repeat calls, and reorder them. Each event is stored
as a row: its digest makes repetition harmless, and it waits until the worker has recorded its message ID.
See docs/decisions/0032.
"""

import hashlib
import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from anymail.signals import AnymailTrackingEvent, EventType, RejectReason

from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import safe_text
from core.delivery.transports.transports_file import DEFAULT
from emails.feedback.opens_and_clicks import Hit
from emails.feedback.reports import ReportedEvent
from emails.models import Recipient
from events.kinds import EventKind
from interfaces.inbound.matching import ReportedRecipient
from interfaces.inbound.models import ProviderReport
from interfaces.inbound.reports.classification import BounceClassification, classify_bounce
from interfaces.inbound.reports.dsn import reply_code, status_code

KINDS = {
    EventType.DELIVERED: EventKind.DELIVERED,
    EventType.BOUNCED: EventKind.BOUNCED,
    EventType.REJECTED: EventKind.FAILED,
    EventType.FAILED: EventKind.FAILED,
    EventType.DEFERRED: EventKind.DEFERRED,
    EventType.COMPLAINED: EventKind.COMPLAINED,
    EventType.UNSUBSCRIBED: EventKind.UNSUBSCRIBED,
    EventType.OPENED: EventKind.OPENED,
    EventType.CLICKED: EventKind.CLICKED,
}
FAILURES = frozenset({EventKind.BOUNCED, EventKind.FAILED, EventKind.DEFERRED})
# A provider that rejects an address as invalid or previously bounced reports a bounce.
BOUNCE_REJECTIONS = frozenset({RejectReason.INVALID, RejectReason.BOUNCED})
MAX_URL = 2_000
# ProviderReport.transport of reports to the path without a name.
ANY_TRANSPORT = ""
MAX_ID = 255


# The named transport whose path is being called.
_transport: ContextVar[str] = ContextVar("transport", default="")


@contextmanager
def calling_transport(name: str) -> Iterator[None]:
    """Store the events within the block as those of a named transport."""
    token = _transport.set(name)
    try:
        yield
    finally:
        _transport.reset(token)


def store_event(sender: Any, event: AnymailTrackingEvent, esp_name: str, **_: Any) -> None:
    """Store an event. anymail replies to the provider afterwards, with an error if this raises."""
    if event.event_type not in KINDS or not event.message_id:
        return
    fields = _event_fields(event)
    transport = _transport.get()
    # The digests of reports without a named transport stay those of earlier versions.
    identity = [
        esp_name,
        event.message_id,
        event.event_id,
        event.recipient,
        fields,
        *([transport] if transport else []),
    ]
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).digest()
    message_id = str(event.message_id)[:MAX_ID]
    row = ProviderReport(
        provider=esp_name[:40], transport=transport, digest=digest, message_id=message_id, event=fields
    )
    ProviderReport.objects.bulk_create([row], ignore_conflicts=True)


def find_recipients(reports: Collection[ProviderReport]) -> dict[int, ReportedRecipient]:
    """Return the recipients of reports by their numbers, in one query."""
    recipients = Recipient.objects.filter(provider_message_id__in={report.message_id for report in reports})
    rows = recipients.values_list("provider_message_id", "transport", "id", "address", "email__from_domain")
    found: dict[tuple[str, str], ReportedRecipient] = {}
    for message_id, transport, *fields in rows:
        recipient = ReportedRecipient(*fields)
        # A message without a name was sent before there were several transports.
        found[str(message_id), transport or DEFAULT] = found[str(message_id), ANY_TRANSPORT] = recipient
    keys = {report.number: (report.message_id, report.transport) for report in reports}
    return {number: found[key] for number, key in keys.items() if key in found}


def interpret_event(row: ProviderReport, recipient: ReportedRecipient) -> ReportedEvent | Hit:
    """Return the event to record for a recipient."""
    fields = row.event
    kind = _kind(fields)
    if kind in {EventKind.OPENED, EventKind.CLICKED}:
        return Hit(recipient.id, fields["url"] if kind is EventKind.CLICKED else None)
    if kind in FAILURES:
        classification = _classify(fields)
        if classification.is_hard and recipient.is_sender_named(fields["text"]):
            classification = BounceClassification(FailureReason.POLICY)
        return ReportedEvent(
            recipient.id, kind, _failure(fields, classification), is_recipient_fault=classification.is_hard
        )
    return ReportedEvent(recipient.id, kind)


def _event_fields(event: AnymailTrackingEvent) -> dict[str, Any]:
    return {
        "kind": event.event_type,
        "at": event.timestamp.isoformat() if event.timestamp else None,
        "text": safe_text(str(event.mta_response or event.description or "")),
        "refusal": event.reject_reason,
        "url": safe_text(str(event.click_url or "")[:MAX_URL]),
    }


def _kind(fields: dict[str, Any]) -> EventKind:
    if fields["kind"] == EventType.REJECTED and fields["refusal"] in BOUNCE_REJECTIONS:
        return EventKind.BOUNCED
    return KINDS[fields["kind"]]


def _classify(fields: dict[str, Any]) -> BounceClassification:
    if fields["kind"] == EventType.REJECTED:
        return BounceClassification(FailureReason.PROVIDER_REFUSED, is_hard=fields["refusal"] in BOUNCE_REJECTIONS)
    text = fields["text"]
    classification = classify_bounce(status=status_code(text), code=reply_code(text), diagnostic=text)
    if classification.reason is FailureReason.UNDETERMINED and fields["refusal"] == RejectReason.INVALID:
        return BounceClassification(FailureReason.BAD_ADDRESS, is_hard=True)
    return classification


def _failure(fields: dict[str, Any], classification: BounceClassification) -> dict[str, Any]:
    text = fields["text"]
    return {
        "code": reply_code(text) or None,
        "enhancedCode": status_code(text) or None,
        "message": text or f"Provider event: {fields['refusal'] or fields['kind']}",
        "reason": classification.reason,
    }
