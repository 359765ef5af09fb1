"""Counters of reputation without emails, and what follows from them."""

from datetime import datetime

from django.utils import timezone

from counters import counters
from counters.slices import Dimension, slice_id
from reputation.counting import ReputationCounter
from streams.models import MAIN
from workspaces.models import Workspace


def count(workspace: Workspace, stream: str = MAIN, *, sent_at: datetime | None = None, **counts: int) -> None:
    """Add to the reputation counters of a stream without sending emails."""
    slices = () if stream == MAIN else (slice_id(workspace.id, Dimension.STREAM, stream),)
    time = sent_at or timezone.now()
    counters.add(
        (counters.CounterKey(workspace.id, time, ReputationCounter[name.upper()].value, slices), number)
        for name, number in counts.items()
    )


def is_suspended(workspace: Workspace) -> bool:
    workspace.refresh_from_db()
    return workspace.is_suspended
