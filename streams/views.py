"""`/v1/streams`: create, list, retrieve, change, archive, unarchive."""

from drf_spectacular.utils import OpenApiParameter
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.pagination import PagePagination
from core.api.schema import Operation, example, response
from core.workspaces.api.schema import keyed_view
from core.workspaces.api.viewsets import WorkspaceViewSet
from core.workspaces.errors import PlanLimitReached
from streams.counts import add_counts, get_counted_stream
from streams.errors import InvalidStream, StreamExists, TransportRouteNotAllowed
from streams.models import Stream
from streams.serializers import CountedStreamSerializer, StreamChanges, StreamInput, StreamSerializer
from streams.services import archive_stream, create_stream, read_streams, unarchive_stream, update_stream

STREAM = example(
    StreamSerializer,
    id="newsletter",
    name="Newsletter",
    description="News about our products, once a month.",
    kind="bulk",
    public=True,
    priority="low",
)
COUNTED = {
    **STREAM,
    "counts": {"total": 1200, "delivered": 1170, "bounced": 12, "opened": 600, "clicked": 150, "complained": 1},
}
ID = OpenApiParameter("id", str, OpenApiParameter.PATH, description="The id of the stream, such as `main`.")


@keyed_view()
class StreamViewSet(WorkspaceViewSet[Stream]):
    queryset = Stream.objects.all()
    serializer_class = StreamSerializer
    sending_actions = frozenset({"list", "retrieve"})
    lookup_value_regex = "[^/]+"

    @Operation(
        "listStreams",
        "List streams",
        "Returns the workspace's streams: `main`, which every workspace has, then the others, oldest first, "
        "with their counts of the last 30 days.",
        response(CountedStreamSerializer, "A page of streams.", COUNTED),
    )
    def list(self, request: Request) -> Response:
        pages = PagePagination()
        counted = add_counts(self.workspace, read_streams(self.workspace).values())
        streams = pages.paginate_queryset(counted, request)
        return pages.get_paginated_response(CountedStreamSerializer(streams, many=True).data)

    @Operation(
        "getStream",
        "Get a stream",
        "Returns one stream, with its counts of the last 30 days.",
        response(CountedStreamSerializer, "The stream.", COUNTED),
        parameters=[ID],
    )
    def retrieve(self, request: Request, pk: str) -> Response:
        return Response(CountedStreamSerializer(get_counted_stream(self.workspace, pk)).data)

    @Operation(
        "createStream",
        "Create a stream",
        "Creates a kind of email with its own unsubscribes and complaints. An email belongs to the stream that its "
        "`stream` names, else to `main`. `kind` and `id` cannot be changed later. A workspace has at most 20 streams.",
        response(StreamSerializer, "The stream was created.", STREAM, status=201),
        problems=[StreamExists, InvalidStream, TransportRouteNotAllowed, PlanLimitReached],
        body=StreamInput,
        bodies={"A newsletter": {"id": "newsletter", "name": "Newsletter", "kind": "bulk"}},
    )
    def create(self, request: Request) -> Response:
        stream = create_stream(self.workspace, **self.valid(StreamInput))
        return Response(StreamSerializer(stream).data, status=status.HTTP_201_CREATED)

    @Operation(
        "updateStream",
        "Change a stream",
        "Changes the given fields. Emails that are accepted already keep their tracking and priority.",
        response(StreamSerializer, "The stream was changed.", STREAM),
        problems=[InvalidStream, TransportRouteNotAllowed],
        body=StreamChanges,
        bodies={"A name": {"name": "Monthly news"}},
        parameters=[ID],
    )
    def partial_update(self, request: Request, pk: str) -> Response:
        stream = update_stream(self.workspace, pk, changes=self.valid(StreamChanges))
        return Response(StreamSerializer(stream).data)

    @Operation(
        "archiveStream",
        "Archive a stream",
        "The stream accepts no more emails; those that it has accepted are sent. Its suppressions and counts stay. "
        "`main` cannot be archived.",
        response(StreamSerializer, "The stream is archived.", {**STREAM, "archivedAt": "2026-11-21T10:00:00.000Z"}),
        problems=[InvalidStream],
        parameters=[ID],
    )
    @action(detail=True, methods=["post"])
    def archive(self, request: Request, pk: str) -> Response:
        return Response(StreamSerializer(archive_stream(self.workspace, pk)).data)

    @Operation(
        "unarchiveStream",
        "Unarchive a stream",
        "Lets the stream accept emails again.",
        response(StreamSerializer, "The stream accepts emails.", STREAM),
        parameters=[ID],
    )
    @action(detail=True, methods=["post"])
    def unarchive(self, request: Request, pk: str) -> Response:
        return Response(StreamSerializer(unarchive_stream(self.workspace, pk)).data)
