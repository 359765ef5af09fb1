"""Queries and responses of `/v1/events`."""

import re
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from core.api.fields import ObjectField, UtcDateTimeField
from core.api.suggestions import MAX_NAME_LENGTH, suggest_event
from events.feed import FeedPage, make_cursor
from events.kinds import EVENT_KINDS, TYPE_PREFIX, wire_type

DEFAULT_LIMIT = 100
MAX_LIMIT = 500
LATEST = "latest"
ONE_KIND = rf"(email\.)?({'|'.join(map(re.escape, EVENT_KINDS))})"
KINDS_PATTERN = f"^({ONE_KIND}(,{ONE_KIND})*)?$"


@extend_schema_field({"type": "string", "pattern": KINDS_PATTERN, "examples": ["delivered,bounced"]})
class KindsField(serializers.CharField):
    """Event types separated by commas, with or without the prefix `email.`."""

    default_error_messages = {"unknown": "Unknown event type {name!r}.{hint} Use one of {known}."}

    def to_internal_value(self, data: Any) -> Any:
        names = [name.strip().removeprefix(TYPE_PREFIX) for name in super().to_internal_value(data).split(",")]
        for name in names:
            if name and name not in EVENT_KINDS:
                hint = suggest_event(name, EVENT_KINDS)
                self.fail("unknown", name=name[:MAX_NAME_LENGTH], hint=hint, known=", ".join(EVENT_KINDS))
        return sorted({name for name in names if name})


class EventStreamQuery(serializers.Serializer[Any]):
    after = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=200,
        help_text=f"The cursor of the last event that you have. `{LATEST}` skips all events until now.",
    )
    types = KindsField(
        required=False, allow_blank=True, help_text="Only these event types, separated by commas. All by default."
    )


class EventsQuery(EventStreamQuery):
    limit = serializers.IntegerField(
        min_value=1,
        default=DEFAULT_LIMIT,
        help_text=f"Events per page. A larger value than {MAX_LIMIT} is reduced to {MAX_LIMIT}.",
    )

    def validate_limit(self, value: int) -> int:
        return min(value, MAX_LIMIT)


class FeedEventSerializer(serializers.Serializer[Any]):
    """An event, with the members of a webhook body and its cursor."""

    id = serializers.CharField()
    type = serializers.ChoiceField(
        [wire_type(kind) for kind in EVENT_KINDS], help_text="The type of the event, as in webhooks."
    )
    event = serializers.ChoiceField(EVENT_KINDS, help_text="The type of the event.")
    createdAt = UtcDateTimeField()
    cursor = serializers.CharField(help_text="Pass it as `after` to continue behind this event.")
    locals()["data"] = ObjectField(help_text="The details of the event.")


class EventsSerializer(serializers.Serializer[Any]):
    locals()["data"] = FeedEventSerializer(many=True, help_text="The events, oldest first.")
    cursor = serializers.CharField(
        help_text="Pass it as `after` of the next request, also if this page is empty: it may have skipped events."
    )
    hasMore = serializers.BooleanField(help_text="Whether later events exist already.")


def render_page(page: FeedPage, *, workspace_id: str) -> dict[str, Any]:
    """Return a page as the API shows it."""
    return {
        "data": [positioned.event.body(make_cursor(workspace_id, positioned.position)) for positioned in page.events],
        "cursor": make_cursor(workspace_id, page.position),
        "hasMore": page.has_more,
    }
