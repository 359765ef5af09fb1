"""Reading the event feed of a workspace from a cursor."""

import struct
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from django.db.models import BigIntegerField, Case, F, QuerySet, When

from core.lib.ids import to_uuid
from core.lib.tokens import InvalidToken, make_token, read_token
from events.models import Event, FeedEntry
from events.rendering import RenderedEvent, render_events

PURPOSE = "event-cursor"
# A workspace and a position.
PAYLOAD = struct.Struct(">16sQ")
# Entries that one page may read to find events of the wanted kinds.
MAX_SCANNED = 2000
# The number of an entry's event in the log.
LOG_NUMBER = Case(When(source="workspaces", then=-F("number")), default=F("number"), output_field=BigIntegerField())


class InvalidCursor(ValueError):
    """Raised for a text that is not a cursor of the workspace."""


@dataclass(frozen=True)
class PositionedEvent:
    event: RenderedEvent
    position: int


@dataclass(frozen=True)
class FeedPage:
    """Events in order.

    position: the feed is read up to here.
    has_more: the feed has later entries.
    """

    events: list[PositionedEvent]
    position: int
    has_more: bool


def make_cursor(workspace_id: str, position: int) -> str:
    """Return a cursor: positions are encrypted, since they count the events of all workspaces."""
    return make_token(PAYLOAD.pack(to_uuid(workspace_id, prefix="ws_").bytes, position), purpose=PURPOSE)


def read_cursor(workspace_id: str, cursor: str) -> int:
    """Return the position of a cursor. Raises InvalidCursor, also for a cursor of another workspace."""
    try:
        workspace, position = PAYLOAD.unpack(read_token(cursor, purpose=PURPOSE))
    except (InvalidToken, struct.error) as error:
        raise InvalidCursor(cursor) from error
    if workspace != to_uuid(workspace_id, prefix="ws_").bytes:
        raise InvalidCursor(cursor)
    return int(position)


def last_position(workspace_id: str) -> int:
    """Return the position of the newest entry, 0 for an empty feed."""
    newest = FeedEntry.objects.filter(workspace_id=workspace_id).order_by("-position")
    return newest.values_list("position", flat=True).first() or 0


def newest_numbers(workspace_id: str, *, limit: int) -> list[int]:
    """Return the numbers of the newest events in the log, the newest first."""
    newest = FeedEntry.objects.filter(workspace_id=workspace_id).order_by("-position")
    return list(newest.values_list(LOG_NUMBER, flat=True)[:limit])


def read_feed(workspace_id: str, *, after: int, kinds: Collection[str], limit: int) -> FeedPage:
    """Return up to limit events after a position.

    kinds: only these kinds; all if empty. A page may be empty although has_more is true, because the events are of
    other kinds or deleted.
    """
    wanted = MAX_SCANNED if kinds else limit
    later = read_entries(FeedEntry.objects.filter(workspace_id=workspace_id, position__gt=after))
    entries = list(later[: wanted + 1])
    scanned = entries[:wanted]
    chosen = _with_kinds(scanned, kinds)[: limit + 1] if kinds else scanned
    if len(chosen) > limit:
        chosen = chosen[:limit]
        return FeedPage(list(load_entries(chosen)), chosen[-1][0], has_more=True)
    position = scanned[-1][0] if scanned else after
    return FeedPage(list(load_entries(chosen)), position, has_more=len(entries) > wanted)


# A position and the number of its event.
Entry = tuple[int, int]


def read_entries(entries: QuerySet[FeedEntry]) -> "QuerySet[FeedEntry, Entry]":
    """Return the entries in order, as positions with the numbers of their events."""
    return entries.order_by("position").values_list("position", LOG_NUMBER)


def load_entries(
    entries: Sequence[Entry], *, kinds: Collection[str] = (), is_whole: bool = False
) -> Iterator[PositionedEvent]:
    """Yield the events of entries in order, without deleted ones.

    kinds: only these kinds; all if empty.
    is_whole: include all that webhooks show of a subject.
    """
    events = render_events([number for _, number in entries], kinds=kinds, is_whole=is_whole)
    for position, number in entries:
        if event := events.get(number):
            yield PositionedEvent(event, position)


def _with_kinds(entries: Sequence[Entry], kinds: Collection[str]) -> list[Entry]:
    numbers = [number for _, number in entries]
    matching = set(Event.objects.filter(number__in=numbers, kind__in=kinds).values_list("number", flat=True))
    return [entry for entry in entries if entry[1] in matching]
