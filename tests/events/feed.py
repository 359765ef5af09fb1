"""Readers of the event feed, as a program that uses the API."""

from typing import Any

from django.contrib.postgres.functions import TransactionNow

from events.sequencer import sequence_events
from tests.conftest import Api
from webhooks.models import Webhook
from webhooks.publishing import publish_events


def read_all(api: Api, *, after: str = "", limit: int = 100, **query: str) -> tuple[list[dict[str, Any]], str]:
    """Sequence and read all events after a cursor; return them with the last cursor."""
    sequence_events()
    events: list[dict[str, Any]] = []
    has_more = True
    while has_more:
        response = api.get("/events", {"after": after, "limit": limit, **query})
        assert response.status_code == 200, response.content
        page = response.json()
        events, after, has_more = events + page["data"], page["cursor"], page["hasMore"]
    return events, after


def publish_committed() -> None:
    """Sequence all events and make their deliveries, as the sequencer of a worker does."""
    # A test is one transaction, whose events have the time of its beginning; endpoints would be younger.
    Webhook.objects.filter(created_at__gt=TransactionNow()).update(created_at=TransactionNow())
    sequence_events()
    publish_events()


def kinds_of(events: list[dict[str, Any]]) -> list[str]:
    return [event["event"] for event in events]
