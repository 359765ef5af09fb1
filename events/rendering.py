"""Rendering events: the members that pages and event streams of `/v1/events`, webhooks and the command line show."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from core.lib.datetimes import format_datetime
from events.kinds import EventBody, wire_type
from events.models import Event
from events.subjects import UNKNOWN, SubjectDescription, describe_subjects

# The columns of an email that Email.event_fields reads.
EMAIL_FIELDS = ("workspace_id", "sender", "to", "subject", "tags", "metadata", "is_test", "stream", "from_domain")


@dataclass(frozen=True)
class RenderedEvent:
    """An event as its readers see it.

    is_test: a sample.
    webhook_ids: the only endpoints that get it, also without a subscription; empty for all with one.
    """

    id: str
    workspace_id: str
    kind: str
    created_at: datetime
    data: dict[str, Any]
    number: int = 0
    is_test: bool = False
    webhook_ids: tuple[str, ...] = ()

    def body(self, cursor: str = "") -> EventBody:
        """Return the JSON members in their order; without a cursor, those of a webhook."""
        members = {
            "id": self.id,
            "type": wire_type(self.kind),
            "event": self.kind,
            "createdAt": format_datetime(self.created_at),
            **({"test": True} if self.is_test else {}),
            **({"cursor": cursor} if cursor else {}),
            "data": self.data,
        }
        return cast(EventBody, members)


def render_events(
    numbers: Collection[int], *, kinds: Collection[str] = (), is_whole: bool = False
) -> dict[int, RenderedEvent]:
    """Return the events of the log with these numbers that still exist, by number.

    kinds: only these kinds; all if empty.
    is_whole: include all that webhooks show of a subject.
    """
    events = Event.objects.filter(number__in=numbers).select_related("email")
    if kinds:
        events = events.filter(kind__in=kinds)
    columns = ("number", "id", "workspace_id", "kind", "payload", "status", "created_at", "email_id", "recipient_id")
    rows = list(events.only(*columns, *(f"email__{name}" for name in EMAIL_FIELDS)))
    subjects = describe_subjects(rows, is_whole=is_whole)
    return {event.number: _render(event, subjects.get(event.number, UNKNOWN)) for event in rows}


def _render(event: Event, subject: SubjectDescription) -> RenderedEvent:
    email: Any = event.email
    return RenderedEvent(
        id=event.id,
        workspace_id=event.workspace_id or email.workspace_id,
        kind=event.kind,
        created_at=event.created_at,
        data={**event.data, **subject.data},
        number=event.number,
        webhook_ids=subject.webhook_ids,
    )
