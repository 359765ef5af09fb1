"""Events as `/v1/events` and webhooks show them, and those that the sequencer publishes to webhooks."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from emails.models import Event
from events.models import FeedSource
from webhooks.services import NewWebhookEvent, publish_events
from workspaces.models import WorkspaceEvent

EMAIL_FIELDS = ("workspace_id", "sender", "to", "subject", "tags", "metadata", "is_test")


@dataclass(frozen=True)
class SourceEvent:
    """An event of either source. data: the members that describe it."""

    id: str
    number: int
    workspace_id: str
    kind: str
    created_at: datetime
    data: dict[str, Any]


def read_events(source: FeedSource, numbers: Collection[int]) -> list[SourceEvent]:
    """Return the events with these numbers that still exist, ordered by number."""
    if source == FeedSource.EMAILS:
        return [_from_timeline(event) for event in _timeline_events(numbers)]
    rows = WorkspaceEvent.objects.filter(number__in=numbers)
    return [SourceEvent(row.id, row.number, row.workspace_id, row.kind, row.created_at, row.payload) for row in rows]


def publish_sequenced(source: FeedSource, numbers: Collection[int]) -> None:
    """Publish events to the subscribed endpoints, in the transaction that gives them their positions."""
    publish_events(
        NewWebhookEvent(event.workspace_id, event.kind, event.id, event.created_at, event.data)
        for event in read_events(source, numbers)
    )


def _timeline_events(numbers: Collection[int]) -> Any:
    fields = (f"email__{name}" for name in EMAIL_FIELDS)
    events = Event.objects.filter(number__in=numbers).select_related("email")
    return events.only("number", "id", "kind", "payload", "created_at", "email_id", *fields)


def _from_timeline(event: Event) -> SourceEvent:
    email = event.email
    about = {
        "to": email.addressees,
        "from": email.sender,
        "subject": email.subject,
        "tags": email.tags,
        "metadata": email.metadata,
        **({"test": True} if email.is_test else {}),
    }
    data = {"emailId": event.email_id, **about, **event.payload}
    return SourceEvent(event.id, event.number, email.workspace_id, event.kind, event.created_at, data)
