"""Streams of the current workspace on its pages, which do not mention them if there is only `main`.

See docs/decisions/0181.
"""

from django.http import HttpRequest

from console.dashboard.auth.current_workspace import current_workspace, workspaces_of
from streams.models import Stream
from streams.services import read_streams


def streams_of(request: HttpRequest) -> list[Stream]:
    """Return the streams of the current workspace, `main` first; none if it has no other. One query per request."""
    cache = request.__dict__
    if "streams" not in cache:
        streams = list(read_streams(current_workspace(request)).values()) if workspaces_of(request) else []
        cache["streams"] = streams if len(streams) > 1 else []
    found: list[Stream] = cache["streams"]
    return found


def selected_stream(request: HttpRequest) -> Stream | None:
    """Return the stream that the switch of a page has selected; None for all."""
    slug = request.GET.get("stream", "")
    return next((stream for stream in streams_of(request) if stream.slug == slug), None)


def own_streams(request: HttpRequest) -> list[Stream]:
    """Return the streams with suppressions of their own: all but `main`, whose suppressions block the workspace."""
    return [stream for stream in streams_of(request) if not stream.is_main]


def suppression_stream(stream: Stream | None) -> str:
    """Return the value of Suppression.stream for the rows of a stream."""
    return "" if stream is None or stream.is_main else stream.slug
