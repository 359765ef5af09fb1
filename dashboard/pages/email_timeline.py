"""The timeline of an email in words."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from dashboard.ui.reasons import sentence_for
from emails.models import Event

Kind = Event.Kind

# Kind → icon, tone, words.
WORDS: dict[str, tuple[str, str, str | Promise]] = {
    Kind.QUEUED: ("inventory_2", "neutral", _("Accepted and queued")),
    Kind.SCHEDULED: ("schedule", "neutral", _("Accepted for later")),
    Kind.SENT: ("send", "info", _("Handed over to the receiving server")),
    Kind.DELIVERED: ("mark_email_read", "success", _("Delivered")),
    Kind.BOUNCED: ("undo", "danger", _("Bounced: the receiving side refused it for good")),
    Kind.FAILED: ("error", "danger", _("Given up")),
    Kind.DEFERRED: ("hourglass_top", "warning", _("Not taken yet; another attempt follows")),
    Kind.OPENED: ("visibility", "success", _("Opened")),
    Kind.CLICKED: ("ads_click", "success", _("Followed a link")),
    Kind.UNSUBSCRIBED: ("unsubscribe", "warning", _("Unsubscribed")),
    Kind.COMPLAINED: ("report", "danger", _("Reported as spam")),
    Kind.CANCELLED: ("block", "neutral", _("Cancelled before it was sent")),
}
UNKNOWN: tuple[str, str, str | Promise] = ("radio_button_unchecked", "neutral", "")
# A tenth of a millisecond each; the API lists the rest.
MAX_EVENTS = 250


@dataclass(frozen=True)
class Moment:
    """One line of the timeline; why is a reason as a sentence, details are the machines' own words."""

    icon: str
    tone: str
    title: str
    to: str
    why: str
    details: tuple[str, ...]
    at: datetime


def moments(events: list[Event]) -> list[Moment]:
    return [_moment(event) for event in events]


def _moment(event: Event) -> Moment:
    icon, tone, words = WORDS.get(event.kind, UNKNOWN)
    payload = event.payload if isinstance(event.payload, dict) else {}
    by_machine = _(" (by a machine)")
    title = f"{words or event.kind}{by_machine if payload.get('machine') else ''}"
    why = sentence_for(payload.get("reason"))
    return Moment(icon, tone, title, str(payload.get("to") or ""), why, _details(payload), event.created_at)


def _details(payload: dict[str, Any]) -> tuple[str, ...]:
    # A reason that has a sentence stands there as that.
    reason = "" if sentence_for(payload.get("reason")) else payload.get("reason")
    found = (_reply(payload), reason, payload.get("url"), payload.get("scheduledFor"))
    return tuple(str(detail) for detail in found if detail)


def _reply(payload: dict[str, Any]) -> str:
    """Return code, enhanced code and sentence; many servers' sentences begin with the enhanced code."""
    code, enhanced, message = (str(payload.get(name) or "") for name in ("code", "enhancedCode", "message"))
    parts = (code, "" if message.startswith(enhanced) else enhanced, message)
    return " ".join(part for part in parts if part)
