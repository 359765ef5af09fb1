"""API errors of streams."""

from typing import ClassVar

from core.api.errors import Member, Problem, field_path


class StreamExists(Problem):
    """The workspace has a stream with this id.

    Ids of archived streams stay taken. Choose another id, or unarchive the stream.
    """

    status, code, title = 409, "stream_exists", "Stream exists"
    example = "There is a stream 'newsletter' already."
    added_members: ClassVar = {"stream": Member("The id of the stream.", "newsletter")}


class StreamNotFound(Problem):
    """The workspace has no stream with this id.

    Check `stream`. Create it with `POST /v1/streams`, or omit it to use `main`.
    """

    status, code, title = 422, "stream_not_found", "Stream not found"
    example = "There is no stream 'newsletter'."
    added_members: ClassVar = {"field": field_path("stream"), "stream": Member("The id as sent.", "newsletter")}


class StreamArchived(Problem):
    """The stream is archived and accepts no emails.

    Unarchive it, or use another stream.
    """

    status, code, title = 422, "stream_archived", "Stream archived"
    example = "The stream 'newsletter' is archived. Unarchive it, or use another one."
    added_members: ClassVar = {"field": field_path("stream"), "stream": Member("The id of the stream.", "newsletter")}


class InvalidStream(Problem):
    """The properties of the stream do not fit together.

    A bulk stream has an unsubscribe link or headers. `main` cannot be archived, and its unsubscribes block the
    workspace. The operator may demand the link in all streams.
    """

    status, code, title = 422, "invalid_stream", "Invalid stream"
    example = "A bulk stream needs unsubscribe: link or headers."
    added_members: ClassVar = {"field": field_path("unsubscribe")}


class StreamPaused(Problem):
    """The stream is paused, because its bounce or complaint rate is too high. Nothing was accepted.

    Queued emails of the stream wait; other streams are not affected. Remove bad addresses and contact the operator.
    """

    status, code, title = 403, "stream_paused", "Stream paused"
    example = "The stream 'newsletter' is paused: 0.6 % complaints in 7 days."
    added_members: ClassVar = {"stream": Member("The id of the stream.", "newsletter")}


class TransportRouteNotAllowed(Problem):
    """The operator has no such route of transports for the workspace.

    Use one of the allowed routes, or omit `transportRoute` for the usual one.
    """

    status, code, title = 422, "transport_route_not_allowed", "Transport route not allowed"
    example = "The route 'bulk' is not allowed here. Allowed: default."
    added_members: ClassVar = {
        "field": field_path("transportRoute"),
        "allowedRoutes": Member("The routes that the workspace may use.", ["default"]),
    }
