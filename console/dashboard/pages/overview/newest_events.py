"""Newest events of a workspace or a stream on the overview, which refreshes them as they come (docs/decisions/0130)."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from console.dashboard.pages.emails.timeline import describe_event, event_payload
from core.workspaces.models import Workspace
from events.feed import newest_numbers
from events.models import Event
from streams.models import Stream

SHOWN = 8
# The newest entries of the feed, among which events of emails, and of one stream, are looked for.
READ = 100
# Highlighted if it came since the refresh before.
NEW = timedelta(seconds=6)


@dataclass(frozen=True)
class NewestEvent:
    """One event of an email. address: of its recipient; empty for an event of the whole email."""

    id: str
    email_id: str
    icon: str
    tone: str
    title: str
    address: str
    subject: str
    at: datetime
    is_new: bool


def read_newest_events(workspace: Workspace, stream: Stream | None) -> list[NewestEvent]:
    """Return the newest events of emails, the newest first, in two queries."""
    numbers = newest_numbers(workspace.id, limit=READ)
    events = Event.objects.filter(number__in=numbers, email__workspace=workspace).select_related("email")
    if stream:
        events = events.filter(email__stream=stream.slug)
    columns = ("number", "id", "kind", "payload", "created_at", "email__subject")
    found = {event.number: event for event in events.only(*columns)}
    now = timezone.now()
    return [_describe(found[number], now) for number in numbers if number in found][:SHOWN]


def _describe(event: Event, now: datetime) -> NewestEvent:
    icon, tone, title = describe_event(event)
    email = event.email
    return NewestEvent(
        event.id,
        email.id if email else "",
        icon,
        tone,
        title,
        str(event_payload(event).get("to") or ""),
        email.subject if email else "",
        event.created_at,
        is_new=now - event.created_at < NEW,
    )
