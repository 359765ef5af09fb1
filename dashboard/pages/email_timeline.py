"""Timeline of an email: its events as text."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from dashboard.ui.reasons import explain_reason
from emails.models import Event

Kind = Event.EventKind

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
    Kind.UNSUBSCRIBED: ("unsubscribe", "warning", _("Unsubscribed")),
    Kind.COMPLAINED: ("report", "danger", _("Reported as spam")),
    Kind.CANCELLED: ("block", "neutral", _("Cancelled before it was sent")),
}
UNKNOWN: tuple[str, str, str | Promise] = ("radio_button_unchecked", "neutral", "")
# Each takes 0.1 ms; the API lists the rest.
MAX_EVENTS = 250


@dataclass(frozen=True)
class TimelineEntry:
    """One event. explanation: the reason as text; details: server replies, URLs and other raw values."""

    icon: str
    tone: str
    title: str
    to: str
    explanation: str
    details: tuple[str, ...]
    at: datetime


def timeline_of(events: list[Event]) -> list[TimelineEntry]:
    return [_timeline_entry(event) for event in events]


def _timeline_entry(event: Event) -> TimelineEntry:
    icon, tone, label = LABELS.get(event.kind, UNKNOWN)
    payload = event.payload if isinstance(event.payload, dict) else {}
    by_machine = _(" (automated)")
    title = f"{label or event.kind}{by_machine if payload.get('machine') else ''}"
    explanation = explain_reason(payload.get("reason"))
    return TimelineEntry(
        icon, tone, title, str(payload.get("to") or ""), explanation, _details(payload), event.created_at
    )


def _details(payload: dict[str, Any]) -> tuple[str, ...]:
    # A reason with an explanation is shown as that.
    reason = "" if explain_reason(payload.get("reason")) else payload.get("reason")
    details = (_reply(payload), reason, payload.get("url"), payload.get("scheduledFor"))
    return tuple(str(detail) for detail in details if detail)


def _reply(payload: dict[str, Any]) -> str:
    """Return code, enhanced code and message; many servers' messages begin with the enhanced code."""
    code, enhanced, message = (str(payload.get(name) or "") for name in ("code", "enhancedCode", "message"))
    parts = (code, "" if message.startswith(enhanced) else enhanced, message)
    return " ".join(part for part in parts if part)
