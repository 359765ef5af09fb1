"""The timeline of an email in words."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from emails.models import Event

Kind = Event.Kind

# Kind → icon, tone, words.
WORDS: dict[str, tuple[str, str, str]] = {
    Kind.QUEUED: ("inventory_2", "neutral", "Accepted and queued"),
    Kind.SCHEDULED: ("schedule", "neutral", "Accepted for later"),
    Kind.SENT: ("send", "info", "Handed over to the receiving server"),
    Kind.DELIVERED: ("mark_email_read", "success", "Delivered"),
    Kind.BOUNCED: ("undo", "danger", "Bounced: the receiving side refused it for good"),
    Kind.FAILED: ("error", "danger", "Given up"),
    Kind.DEFERRED: ("hourglass_top", "warning", "Not taken yet; another attempt follows"),
    Kind.OPENED: ("visibility", "success", "Opened"),
    Kind.CLICKED: ("ads_click", "success", "Followed a link"),
    Kind.UNSUBSCRIBED: ("unsubscribe", "warning", "Unsubscribed"),
    Kind.COMPLAINED: ("report", "danger", "Reported as spam"),
    Kind.CANCELLED: ("block", "neutral", "Cancelled before it was sent"),
}
UNKNOWN = ("radio_button_unchecked", "neutral", "")
MAX_EVENTS = 500


@dataclass(frozen=True)
class Moment:
    """One line of the timeline; details are the machine's own words, shown as text."""

    icon: str
    tone: str
    title: str
    to: str
    details: tuple[str, ...]
    at: datetime


def moments(events: list[Event]) -> list[Moment]:
    return [_moment(event) for event in events]


def _moment(event: Event) -> Moment:
    icon, tone, words = WORDS.get(event.kind, UNKNOWN)
    payload = event.payload if isinstance(event.payload, dict) else {}
    title = f"{words or event.kind}{' (by a machine)' if payload.get('machine') else ''}"
    return Moment(icon, tone, title, str(payload.get("to") or ""), _details(payload), event.created_at)


def _details(payload: dict[str, Any]) -> tuple[str, ...]:
    reply = " ".join(str(payload[name]) for name in ("code", "enhancedCode", "message") if payload.get(name))
    found = (reply, payload.get("reason"), payload.get("url"), payload.get("scheduledFor"))
    return tuple(str(detail) for detail in found if detail)
