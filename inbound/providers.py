"""What a provider's webhooks tell, by django-anymail's signal: written down first, understood later.

A provider calls before its own API has answered us, calls twice, and calls in any order. So an event is a
row before it is a fact: its digest makes a repetition harmless, and it waits until its message is known.
"""

import hashlib
import json
from collections.abc import Collection
from typing import Any

from anymail.signals import AnymailTrackingEvent, EventType, RejectReason

from delivery.bounces.reasons import Reason
from delivery.bounces.replies import safe_text
from emails.events.opens_and_clicks import Hit
from emails.events.reports import Reported
from emails.models import Event, Recipient
from inbound.models import ProviderReport
from inbound.reports.classification import Judgement, judge
from inbound.reports.dsn import reply_code, status_code

KINDS = {
    EventType.DELIVERED: Event.Kind.DELIVERED,
    EventType.BOUNCED: Event.Kind.BOUNCED,
    EventType.REJECTED: Event.Kind.FAILED,
    EventType.FAILED: Event.Kind.FAILED,
    EventType.DEFERRED: Event.Kind.DEFERRED,
    EventType.COMPLAINED: Event.Kind.COMPLAINED,
    EventType.UNSUBSCRIBED: Event.Kind.UNSUBSCRIBED,
    EventType.OPENED: Event.Kind.OPENED,
    EventType.CLICKED: Event.Kind.CLICKED,
}
FAILURES = frozenset({Event.Kind.BOUNCED, Event.Kind.FAILED, Event.Kind.DEFERRED})
# A provider that refuses an address because of what it knows about it has told a bounce.
BOUNCED_BEFORE = frozenset({RejectReason.INVALID, RejectReason.BOUNCED})
MAX_URL = 2_000
MAX_ID = 255


def write_down(sender: Any, event: AnymailTrackingEvent, esp_name: str, **_: Any) -> None:
    """Store an event; anymail answers its provider after this, and not with success when it raises."""
    if event.event_type not in KINDS or not event.message_id:
        return
    told = _told(event)
    identity = [esp_name, event.message_id, event.event_id, event.recipient, told]
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).digest()
    row = ProviderReport(provider=esp_name[:40], digest=digest, message_id=str(event.message_id)[:MAX_ID], event=told)
    ProviderReport.objects.bulk_create([row], ignore_conflicts=True)


def recipients(message_ids: Collection[str]) -> dict[str, str]:
    """Return the recipient whose copy each of the provider's ids stands for, in one query."""
    found = Recipient.objects.filter(provider_message_id__in=message_ids)
    return {
        str(message_id): recipient_id for message_id, recipient_id in found.values_list("provider_message_id", "id")
    }


def reported(row: ProviderReport, recipient_id: str) -> Reported | Hit:
    """Return what an event means for its recipient."""
    told = row.event
    kind = _kind(told)
    if kind in {Event.Kind.OPENED, Event.Kind.CLICKED}:
        return Hit(recipient_id, told["url"] if kind is Event.Kind.CLICKED else None)
    if kind in FAILURES:
        judgement = _judged(told)
        return Reported(recipient_id, kind, _failure(told, judgement), is_recipient_fault=judgement.is_hard)
    return Reported(recipient_id, kind)


def _told(event: AnymailTrackingEvent) -> dict[str, Any]:
    return {
        "kind": event.event_type,
        "at": event.timestamp.isoformat() if event.timestamp else None,
        "text": safe_text(str(event.mta_response or event.description or "")),
        "refusal": event.reject_reason,
        "url": safe_text(str(event.click_url or "")[:MAX_URL]),
    }


def _kind(told: dict[str, Any]) -> Event.Kind:
    if told["kind"] == EventType.REJECTED and told["refusal"] in BOUNCED_BEFORE:
        return Event.Kind.BOUNCED
    return KINDS[told["kind"]]


def _judged(told: dict[str, Any]) -> Judgement:
    if told["kind"] == EventType.REJECTED:
        return Judgement(Reason.PROVIDER_REFUSED, is_hard=told["refusal"] in BOUNCED_BEFORE)
    text = told["text"]
    judgement = judge(status=status_code(text), code=reply_code(text), diagnostic=text)
    if judgement.reason is Reason.UNDETERMINED and told["refusal"] == RejectReason.INVALID:
        return Judgement(Reason.BAD_ADDRESS, is_hard=True)
    return judgement


def _failure(told: dict[str, Any], judgement: Judgement) -> dict[str, Any]:
    text = told["text"]
    return {
        "code": reply_code(text) or None,
        "enhancedCode": status_code(text) or None,
        "message": text or f"The provider says: {told['refusal'] or told['kind']}",
        "reason": judgement.reason,
    }
