"""Streams in dialects that name them by a UUID or a number: new ones get an id made of their name."""

from typing import Any

from django.utils.text import slugify

from core.workspaces.models import Workspace
from streams.models import Stream
from streams.serializers import StreamChanges, StreamInput
from streams.services import MAX_STREAMS, create_stream, read_streams, update_stream

# Leaves room for a number in the id of a stream.
MAX_BASE = 36


def create_named_stream(workspace: Workspace, fields: dict[str, Any]) -> Stream:
    """Create a public bulk stream. fields: those of `/v1`. Raises ValidationError, PlanLimitReached."""
    slug = _free_slug(workspace, str(fields.get("name")))
    return create_stream(workspace, **StreamInput().run_validation({**fields, "kind": Stream.Kind.BULK, "id": slug}))


def change_stream(workspace: Workspace, stream: Stream, fields: dict[str, Any]) -> Stream:
    """Change a stream, if there is something to change. Raises ValidationError, InvalidStream."""
    changes = StreamChanges().run_validation(fields)
    return update_stream(workspace, stream.slug, changes=changes) if changes else stream


def _free_slug(workspace: Workspace, name: str) -> str:
    base = slugify(name.replace("_", "-"))[:MAX_BASE].strip("-") or "stream"
    taken = read_streams(workspace)
    return next(
        slug for slug in (base, *(f"{base}-{number}" for number in range(2, MAX_STREAMS + 3))) if slug not in taken
    )
