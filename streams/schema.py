"""`/v1/streams` in the OpenAPI document."""

from drf_spectacular.utils import OpenApiParameter

from core.api.schema import Operation, response
from core.workspaces.api.schema import keyed_view
from core.workspaces.errors import PlanLimitReached
from streams.errors import InvalidStream, StreamExists, TransportRouteNotAllowed
from streams.serializers import CountedStreamSerializer, StreamChanges, StreamInput, StreamSerializer

STREAM = {
    "id": "newsletter",
    "name": "Newsletter",
    "description": "News about our products, once a month.",
    "kind": "bulk",
    "unsubscribe": "link",
    "scope": "stream",
    "ownBounces": False,
    "ignoresUnsubscribes": False,
    "public": True,
    "priority": "low",
    "trackOpens": True,
    "trackClicks": True,
    "archivedAt": None,
    "pausedAt": None,
    "pausedReason": "",
    "createdAt": "2026-11-20T09:12:31.482Z",
}
COUNTED = {
    **STREAM,
    "counts": {"total": 1200, "delivered": 1170, "bounced": 12, "opened": 600, "clicked": 150, "complained": 1},
}
ID = OpenApiParameter("id", str, OpenApiParameter.PATH, description="The id of the stream, such as `main`.")

streams_schema = keyed_view(
    list=Operation(
        "listStreams",
        "List streams",
        "Returns the workspace's streams: `main`, which every workspace has, then the others, oldest first, "
        "with their counts of the last 30 days.",
        response(CountedStreamSerializer, "A page of streams.", COUNTED),
    ),
    create=Operation(
        "createStream",
        "Create a stream",
        "Creates a kind of email with its own unsubscribes and complaints. An email belongs to the stream that its "
        "`stream` names, else to `main`. `kind` and `id` cannot be changed later. A workspace has at most 20 streams.",
        response(StreamSerializer, "The stream was created.", STREAM, status=201),
        problems=[StreamExists, InvalidStream, TransportRouteNotAllowed, PlanLimitReached],
        body=StreamInput,
        bodies={"A newsletter": {"id": "newsletter", "name": "Newsletter", "kind": "bulk"}},
    ),
    retrieve=Operation(
        "getStream",
        "Get a stream",
        "Returns one stream, with its counts of the last 30 days.",
        response(CountedStreamSerializer, "The stream.", COUNTED),
        parameters=[ID],
    ),
    partial_update=Operation(
        "updateStream",
        "Change a stream",
        "Changes the given fields. Emails that are accepted already keep their tracking and priority.",
        response(StreamSerializer, "The stream was changed.", STREAM),
        problems=[InvalidStream, TransportRouteNotAllowed],
        body=StreamChanges,
        bodies={"A name": {"name": "Monthly news"}},
        parameters=[ID],
    ),
    archive=Operation(
        "archiveStream",
        "Archive a stream",
        "The stream accepts no more emails; those that it has accepted are sent. Its suppressions and counts stay. "
        "`main` cannot be archived.",
        response(StreamSerializer, "The stream is archived.", {**STREAM, "archivedAt": "2026-11-21T10:00:00.000Z"}),
        problems=[InvalidStream],
        parameters=[ID],
    ),
    unarchive=Operation(
        "unarchiveStream",
        "Unarchive a stream",
        "Lets the stream accept emails again.",
        response(StreamSerializer, "The stream accepts emails.", STREAM),
        parameters=[ID],
    ),
)
