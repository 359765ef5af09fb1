"""`/v1/events` in the OpenAPI document."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter

from core.api.errors import InvalidFields, RateLimitExceeded
from core.api.schema import Operation, response
from core.workspaces.api.schema import keyed_view
from events.api.serializers import LATEST, EventsQuery, EventsSerializer, EventStreamQuery

CURSOR = "3kqQm0v5TqfXv0Yx1nX2pEo0t8m1mXbX7nCq3yqQm0v5TqfXv0Yx1nU"
EVENT: dict[str, Any] = {
    "id": "evt_0Uf8c7QhJkLzXcVbNmQwEr",
    "type": "email.bounced",
    "event": "bounced",
    "createdAt": "2026-11-21T06:20:00.412Z",
    "cursor": CURSOR,
    "data": {
        "emailId": "0Uf8c5MnBvCxZaSdFgHjKl",
        "to": "ada@example.com",
        "from": "hello@demo.example",
        "subject": "Hello",
        "status": "bounced",
        "tags": [],
        "metadata": None,
        "code": 550,
        "enhancedCode": "5.1.1",
        "message": "5.1.1 No such user",
        "reason": "unknown_user",
    },
}
LINES = f'retry: 2000\n\nid: {CURSOR}\nevent: email.bounced\ndata: {{"id":"{EVENT["id"]}","type":"email.bounced"}}\n\n'

events_schema = keyed_view(
    get=Operation(
        "listEvents",
        "List events",
        "Returns the events of the workspace in the order in which they were committed: those of emails, `suppressed` "
        "recipients, domains (`domain.verified`, `domain.failed`), suppressions (`suppression.added`, "
        "`suppression.removed`) and alerts (`alert.triggered`, `alert.resolved`). Store `cursor` after each page and "
        "pass it as `after`: every event is returned once, and the events of one recipient are in their order. Without "
        "`after`, the events begin with the oldest one of the plan's retention.",
        response(EventsSerializer, "A page of events.", {"data": [EVENT], "cursor": CURSOR, "hasMore": False}),
        parameters=[EventsQuery],
    )
)
event_stream_schema = keyed_view(
    get=Operation(
        "streamEvents",
        "Stream events",
        "Sends events as server-sent events while the connection is open, with the cursor as the `id` of each. Each "
        "`data` is an event as in the list. A client that connects again with the header `Last-Event-ID`, as browsers "
        f"do, misses none; `after` is used without the header, and is `{LATEST}` by default. Connections end after an "
        "hour at the latest, or when the key is revoked. A process serves up to 500 streams.",
        response({"type": "string"}, "The events.", examples={"Events": LINES}, media_type="text/event-stream"),
        problems=[InvalidFields, RateLimitExceeded],
        parameters=[
            EventStreamQuery,
            OpenApiParameter(
                "Last-Event-ID", {"type": "string"}, OpenApiParameter.HEADER, description="The last cursor received."
            ),
        ],
    )
)
