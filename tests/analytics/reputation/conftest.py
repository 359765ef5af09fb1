"""Counters of reputation without emails, and what follows from them."""

from datetime import datetime

from django.utils import timezone

from analytics.reputation.counting import ReputationCounter
from core.counters import counters
from core.counters.slices import Dimension, slice_id
from core.workspaces.models import Workspace
from streams.models import MAIN


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
