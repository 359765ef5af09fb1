"""`/v1/events`: the events of the workspace in order, as pages and as a stream."""

from django.http import StreamingHttpResponse
from rest_framework import serializers
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from core.workspaces.api.authentication import key_of
from core.workspaces.api.viewsets import WorkspaceView
from events.api.schema import event_stream_schema, events_schema
from events.api.serializers import LATEST, EventsQuery, EventStreamQuery, render_page
from events.feed import InvalidCursor, last_position, read_cursor, read_feed
from events.stream import EventStreamResponse, Subscription


class EventStreamRenderer(JSONRenderer):
    """Accepts text/event-stream in content negotiation. It renders errors only, as JSON."""

    media_type = "text/event-stream"
    format = "event-stream"


@events_schema
class EventsView(WorkspaceView):
    action = "events"

    def get(self, request: Request) -> Response:
        query = self.valid_query(EventsQuery)
        after = read_after(self.workspace.id, query.get("after", ""))
        page = read_feed(self.workspace.id, after=after, kinds=query.get("types", ()), limit=query["limit"])
        return Response(render_page(page, workspace_id=self.workspace.id))


@event_stream_schema
class EventStreamView(WorkspaceView):
    action = "stream"
    renderer_classes = (EventStreamRenderer, JSONRenderer)

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
