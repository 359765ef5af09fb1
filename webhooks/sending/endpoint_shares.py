"""Whose turn it is: how many attempts each endpoint may have under way, and how a claim is dealt out.

An endpoint earns its pace: it doubles with every quick round, whatever was answered, and a slow attempt takes it
down to the least. Slow endpoints share half of a process's sessions, so that however many hang, the others find
the other half free. Held-back deliveries wait where they are and use up no attempt (docs/decisions/0035).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

SLOW_PACE = 2
FIRST_PACE = 4
FULL_PACE = 32
SLOW_SECONDS = 2.0
SLOW_SHARE = 0.5


@dataclass(frozen=True)
class EndpointShare:
    """An endpoint with ready deliveries; room: attempts that it may have under way beside those that are."""

    webhook_id: str
    room: int
    is_slow: bool


def open_lanes(lanes: Iterable[EndpointShare], *, limit: int, slow_limit: int) -> list[EndpointShare]:
    """Return up to limit lanes with room, in their order; of slow ones as much room as slow_limit allows."""
    return list(islice(_with_room(lanes, slow_limit), limit))


def _with_room(lanes: Iterable[EndpointShare], slow_limit: int) -> Iterable[EndpointShare]:
    for lane in lanes:
        room = min(lane.room, slow_limit) if lane.is_slow else lane.room
        if room > 0:
            slow_limit -= room if lane.is_slow else 0
            yield replace(lane, room=room)


def deal(lanes: Sequence[EndpointShare], *, limit: int) -> dict[str, int]:
    """Share limit out among lanes, no more than limit of them: equally, and what one has no room for to the others."""
    shares: dict[str, int] = {}
    for place, lane in enumerate(sorted(lanes, key=lambda lane: lane.room)):
        share = min(lane.room, -(-limit // (len(lanes) - place)))
        shares[lane.webhook_id] = share
        limit -= share
    return shares
