"""`/v1/events`: the events of the workspace in order, as pages and as a stream."""

from typing import Any

from django.http import StreamingHttpResponse
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.errors import InvalidFields
from core.api.schema import Operation, response
from core.workspaces.api.authentication import key_of
from core.workspaces.api.schema import keyed_view
from core.workspaces.api.viewsets import WorkspaceView
from events.api.serializers import LATEST, EventsQuery, EventsSerializer, EventStreamQuery, render_page
from events.feed import InvalidCursor, last_position, read_cursor, read_feed
from events.stream import EventStreamResponse, Subscription


class EventStreamRenderer(JSONRenderer):
    """Accepts text/event-stream in content negotiation. It renders errors only, as JSON."""

    media_type = "text/event-stream"
    format = "event-stream"


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


@keyed_view()
class EventsView(WorkspaceView):
    action = "events"

    @Operation(
        "listEvents",
        "List events",
        "Returns the events of the workspace in the order in which they were committed: those of emails, `suppressed` "
        "recipients, domains (`domain.verified`, `domain.failed`, `domain.auth_failing`, `domain.spoofed`, "
        "`domain.replay`), suppressions (`suppression.added`, `suppression.removed`) and alerts (`alert.triggered`, "
        "`alert.resolved`). Store `cursor` after each page and pass it as `after`: every event is returned once, and "
        "the events of one recipient are in their order. Without `after`, the events begin with the oldest one of the "
        "plan's retention.",
        response(EventsSerializer, "A page of events.", {"data": [EVENT], "cursor": CURSOR, "hasMore": False}),
        parameters=[EventsQuery],
    )
    def get(self, request: Request) -> Response:
        query = self.valid_query(EventsQuery)
        after = read_after(self.workspace.id, query.get("after", ""))
        page = read_feed(self.workspace.id, after=after, kinds=query.get("types", ()), limit=query["limit"])
        return Response(render_page(page, workspace_id=self.workspace.id))


@keyed_view()
class EventStreamView(WorkspaceView):
    action = "stream"
    renderer_classes = (EventStreamRenderer, JSONRenderer)

    @Operation(
        "streamEvents",
        "Stream events",
        "Sends events as server-sent events while the connection is open, with the cursor as the `id` of each. Each "
        "`data` is an event as in the list. A client that connects again with the header `Last-Event-ID`, as browsers "
        f"do, misses none; `after` is used without the header, and is `{LATEST}` by default. Connections end after an "
        "hour at the latest, or when the key is revoked. A process serves up to 500 streams.",
        response({"type": "string"}, "The events.", examples={"Events": LINES}, media_type="text/event-stream"),
        problems=[InvalidFields],
        parameters=[
            EventStreamQuery,
            OpenApiParameter(
                "Last-Event-ID", {"type": "string"}, OpenApiParameter.HEADER, description="The last cursor received."
            ),
        ],
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        query = self.valid_query(EventStreamQuery)
        cursor = request.headers.get("Last-Event-ID") or query.get("after") or LATEST
        position = read_after(self.workspace.id, cursor)
        subscription = Subscription(key_of(request).id, self.workspace.id, tuple(query.get("types", ())))
        if request.method == "HEAD":
            # A server drops the body of the response, and nothing would end it.
            return StreamingHttpResponse((), content_type=EventStreamRenderer.media_type)
        return EventStreamResponse(subscription, after=position, client=request.META.get("gunicorn.socket"))


def read_after(workspace_id: str, cursor: str) -> int:
    """Return the position to read from. Raises ValidationError for an invalid cursor."""
    if cursor == LATEST:
        return last_position(workspace_id)
    try:
        return read_cursor(workspace_id, cursor) if cursor else 0
    except InvalidCursor as error:
        detail = f"This is not a cursor of this workspace. Use the cursor of an event, or {LATEST}."
        raise serializers.ValidationError(
            {"after": [serializers.ErrorDetail(detail, code="invalid_cursor")]}
        ) from error
