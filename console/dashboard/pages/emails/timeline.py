"""Timeline of an email: its events as text, by recipient (docs/decisions/0268)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from console.dashboard.texts.reasons import explain_reason, explain_wait
from core.lib.ids import is_id
from emails.models import Email
from events.kinds import NEXT_TRANSPORT, TLS, TRANSPORT, WAITED_FOR, EventKind
from events.models import Event
from receiving.models import ReceivedEmail
from webhooks.models import WebhookDelivery

Kind = EventKind

# Kind → icon, tone, label.
LABELS: dict[str, tuple[str, str, str | Promise]] = {
    Kind.QUEUED: ("inventory_2", "neutral", _("Accepted and queued")),
    Kind.SCHEDULED: ("schedule", "neutral", _("Accepted and scheduled")),
    Kind.SENT: ("send", "info", _("Accepted by the receiving server")),
    Kind.DELIVERED: ("mark_email_read", "success", _("Delivered")),
    Kind.BOUNCED: ("undo", "danger", _("Bounced: the receiving server rejected it permanently")),
    Kind.FAILED: ("error", "danger", _("Failed: no attempts left")),
    Kind.DEFERRED: ("hourglass_top", "warning", _("Deferred: another attempt will follow")),
    Kind.OPENED: ("visibility", "success", _("Opened")),
    Kind.CLICKED: ("ads_click", "success", _("Clicked a link")),
    Kind.UNSUBSCRIBED: ("unsubscribe", "neutral", _("Unsubscribed")),
    Kind.REPLIED: ("reply", "success", _("Answered by the recipient")),
    Kind.COMPLAINED: ("report", "danger", _("Reported as spam")),
    Kind.CANCELLED: ("block", "neutral", _("Cancelled before it was sent")),
    Kind.HELD: ("approval", "warning", _("Waits for approval")),
    Kind.APPROVED: ("check_circle", "success", _("Approved")),
    Kind.REJECTED: ("cancel", "danger", _("Rejected")),
}
RESCHEDULED = _("Rescheduled")
# Members of an event → its title with them.
TITLES: dict[str, str | Promise] = {
    "machine": _("%(event)s (automated)"),
    "captured": _("%(event)s (captured by the inbox)"),
    "redirected": _("%(event)s (redirected)"),
}
# Policies of recipient domains for TLS, by their names in events.
POLICIES = {"sts": "MTA-STS", "dane": "DANE"}
UNKNOWN: tuple[str, str, str | Promise] = ("radio_button_unchecked", "neutral", "")
# Each takes 0.1 ms; the API lists the rest.
MAX_EVENTS = 250
# The unit and the text from a time on.
AFTER: tuple[tuple[timedelta, timedelta, str | Promise], ...] = (
    (timedelta(days=2), timedelta(days=1), _("after %(count)s days")),
    (timedelta(hours=1), timedelta(hours=1), _("after %(count)s h")),
    (timedelta(minutes=1), timedelta(minutes=1), _("after %(count)s min")),
    (timedelta(seconds=1), timedelta(seconds=1), _("after %(count)s s")),
)


@dataclass(frozen=True)
class TimelineEntry:
    """One event.

    explanation: the reason as text.
    details: server replies, URLs and other raw values.
    scheduled_for: the new time of an email that was rescheduled.
    received_id: the answer, unless it was deleted.
    after: the time since the email was accepted or due, as text.
    deliveries: the deliveries of the event, one for each webhook.
    """

    icon: str
    tone: str
    title: str
    to: str
    explanation: str
    details: tuple[str, ...]
    scheduled_for: datetime | None
    received_id: str
    at: datetime
    after: str
    deliveries: tuple[WebhookDelivery, ...]


@dataclass(frozen=True)
class TimelineGroup:
    """The events of one recipient in order.

    address: empty for events of the whole email, and if it has a single recipient.
    """

    address: str
    entries: list[TimelineEntry]


@dataclass(frozen=True)
class Timeline:
    """The first events of an email; has_more: the API lists the others."""

    groups: list[TimelineGroup]
    has_more: bool

    @property
    def entries(self) -> list[TimelineEntry]:
        return [entry for group in self.groups for entry in group.entries]


def read_timeline(email: Email) -> Timeline:
    """Return the timeline of an email, in two queries for any number of events, three with answers."""
    events = list(email.events.all()[: MAX_EVENTS + 1])
    shown = events[:MAX_EVENTS]
    deliveries = _deliveries(email, shown)
    answers = _answers(email, shown)
    entries = [
        _timeline_entry(event, email, tuple(deliveries.get(event.id, ())), answers.get(event.id, "")) for event in shown
    ]
    return Timeline(_by_recipient(entries), has_more=len(events) > MAX_EVENTS)


def last_event_number(email: Email) -> int | None:
    """Return the number of the newest event, which grows with each event; None without any."""
    return email.events.order_by("-number").values_list("number", flat=True).first()


def describe_event(event: Event) -> tuple[str, str, str]:
    """Return the icon, the tone and the title of an event of an email."""
    icon, tone, label = LABELS.get(event.kind, UNKNOWN)
    payload = event_payload(event)
    title = str(RESCHEDULED if _new_time(payload) else label or event.kind)
    for member, text in TITLES.items():
        if payload.get(member):
            title = str(text) % {"event": title}
    return icon, tone, title


def event_payload(event: Event) -> dict[str, Any]:
    """Return the payload as a workspace sees it; empty for one that is no object."""
    return event.shown_payload if isinstance(event.payload, dict) else {}


def time_after(start: datetime, at: datetime) -> str:
    """Return the time from start to at as text, such as `after 3 s`, rounded down; empty if there is none."""
    duration = at - start
    if duration <= timedelta():
        return ""
    for least, unit, text in AFTER:
        if duration >= least:
            return str(text) % {"count": duration // unit}
    return gettext("after less than 1 s")


def _by_recipient(entries: Sequence[TimelineEntry]) -> list[TimelineGroup]:
    """Return the entries by recipient, those of the whole email first; in one group if there is one recipient."""
    if len({entry.to for entry in entries if entry.to}) < 2:
        return [TimelineGroup("", list(entries))]
    groups: dict[str, list[TimelineEntry]] = {"": []}
    for entry in entries:
        groups.setdefault(entry.to, []).append(entry)
    return [TimelineGroup(address, of_recipient) for address, of_recipient in groups.items() if of_recipient]


def _deliveries(email: Email, events: Sequence[Event]) -> dict[str, list[WebhookDelivery]]:
    """Return the webhook deliveries of events by event id; those of deleted webhooks are left out."""
    found: dict[str, list[WebhookDelivery]] = {}
    rows = WebhookDelivery.objects.filter(workspace=email.workspace_id, event__in=[event.id for event in events])
    for delivery in rows.select_related("webhook").defer("attempts"):
        found.setdefault(delivery.event_id, []).append(delivery)
    return found


def _answers(email: Email, events: Sequence[Event]) -> dict[str, str]:
    """Return the ids of the received emails that still exist, by the id of the event of each answer."""
    ids = {event.id: str(event.payload.get("inboundId", "")) for event in events if event.kind == Kind.REPLIED}
    valid = {received_id for received_id in ids.values() if is_id(received_id, prefix="inb_")}
    if not valid:
        return {}
    found = ReceivedEmail.objects.filter(workspace=email.workspace_id, id__in=valid).values_list("id", flat=True)
    existing = set(found)
    return {event_id: received_id for event_id, received_id in ids.items() if received_id in existing}


def _timeline_entry(
    event: Event, email: Email, deliveries: tuple[WebhookDelivery, ...], received_id: str
) -> TimelineEntry:
    icon, tone, title = describe_event(event)
    payload = event_payload(event)
    scheduled_for = _new_time(payload)
    reason, wait = explain_reason(payload.get("reason")), explain_wait(payload.get(WAITED_FOR))
    explanation = f"{reason} {wait}".strip()
    to, details = str(payload.get("to") or ""), _details(payload)
    at = event.created_at
    # Does not count the wait until the time of a scheduled email.
    after = time_after(email.date if at >= email.date else email.created_at, at)
    return TimelineEntry(icon, tone, title, to, explanation, details, scheduled_for, received_id, at, after, deliveries)


def _details(payload: dict[str, Any]) -> tuple[str, ...]:
    # A reason with an explanation is shown as that.
    reason = "" if explain_reason(payload.get("reason")) else payload.get("reason")
    details = (_approver(payload), _reply(payload), reason, payload.get("url"), _tls(payload), _transport(payload))
    return tuple(str(detail) for detail in details if detail)


def _tls(payload: dict[str, Any]) -> str:
    """Return the encryption of a direct delivery, such as `TLSv1.3, DANE, certificate verified`; empty for others."""
    tls = payload.get(TLS)
    if not isinstance(tls, dict):
        return ""
    verified = gettext("certificate verified") if tls.get("verified") else ""
    parts = (tls.get("version") or gettext("not encrypted"), POLICIES.get(str(tls.get("policy"))), verified)
    return ", ".join(str(part) for part in parts if part)


def _approver(payload: dict[str, Any]) -> str:
    """Return who decided about an email that waited for approval; empty for other events."""
    by = payload.get("by")
    return str(by.get("name", "")) if isinstance(by, dict) else ""


def _transport(payload: dict[str, Any]) -> str:
    """Return the transport of an attempt, and the one that came next; empty unless the operator shows them."""
    return " → ".join(str(payload[name]) for name in (TRANSPORT, NEXT_TRANSPORT) if payload.get(name))


def _new_time(payload: dict[str, Any]) -> datetime | None:
    """Return the time that a rescheduled email was moved to; None for any other event."""
    try:
        new_time = datetime.fromisoformat(payload["scheduledFor"])
    except (KeyError, TypeError, ValueError):
        return None
    return new_time if new_time.tzinfo else None


def _reply(payload: dict[str, Any]) -> str:
    """Return code, enhanced code and message; many servers' messages begin with the enhanced code."""
    code, enhanced, message = (str(payload.get(name) or "") for name in ("code", "enhancedCode", "message"))
    parts = (code, "" if message.startswith(enhanced) else enhanced, message)
    return " ".join(part for part in parts if part)
