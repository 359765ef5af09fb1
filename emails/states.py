"""The states of a recipient and the only moves between them (CONTRACT section 3, "States").

Nothing assigns a status: an update names the state it wants, and `sources` the states it may come from.
"""

from django.db import models


class State(models.TextChoices):
    SCHEDULED = "scheduled"
    QUEUED = "queued"
    SENT = "sent"
    DELIVERED = "delivered"
    BOUNCED = "bounced"
    FAILED = "failed"
    OPENED = "opened"
    CLICKED = "clicked"
    CANCELLED = "cancelled"


MOVES: dict[State, frozenset[State]] = {
    State.SCHEDULED: frozenset({State.QUEUED, State.CANCELLED}),
    # A pixel may load before the worker has written down that the mail was accepted.
    State.QUEUED: frozenset({State.SENT, State.BOUNCED, State.FAILED, State.OPENED, State.CLICKED}),
    # failed: a delivery report that gave up on a 4xx.
    State.SENT: frozenset({State.DELIVERED, State.BOUNCED, State.FAILED, State.OPENED, State.CLICKED}),
    # bounced: a host that accepted the mail and sent a report later.
    State.DELIVERED: frozenset({State.BOUNCED, State.OPENED, State.CLICKED}),
    State.OPENED: frozenset({State.CLICKED}),
    State.BOUNCED: frozenset(),
    State.FAILED: frozenset(),
    State.CLICKED: frozenset(),
    State.CANCELLED: frozenset(),
}

# Some host has taken the mail, and has not said since that it could not be delivered.
HANDED_OVER = frozenset({State.SENT, State.DELIVERED, State.OPENED, State.CLICKED})

# The status of an email: the first of these that one of its recipients has.
PRECEDENCE = (
    State.CLICKED,
    State.OPENED,
    State.DELIVERED,
    State.SENT,
    State.QUEUED,
    State.SCHEDULED,
    State.BOUNCED,
    State.FAILED,
    State.CANCELLED,
)


def sources(target: State) -> list[str]:
    """Return the states from which a recipient may move to target."""
    return [source.value for source, targets in MOVES.items() if target in targets]
