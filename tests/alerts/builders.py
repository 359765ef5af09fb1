"""Counters, usage and clocks for tests of alerts."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import F

from alerts.checks import MINIMUM_INTERVAL
from alerts.models import Alert
from alerts.services import create_alert
from core.counters import counters
from core.counters.slices import Dimension, slice_id
from core.workspaces.models import Usage, Workspace
from streams.models import MAIN


def make_alert(workspace: Workspace, metric: str = "bounce_rate", threshold: float = 4, **fields: Any) -> Alert:
    return create_alert(workspace, metric=metric, threshold=threshold, **fields)


def count(workspace: Workspace, stream: str = MAIN, *, age: timedelta = timedelta(0), **counts: int) -> None:
    """Add to the counters of a stream: rated_sent counts under the key rated.sent."""
    slices = () if stream == MAIN else (slice_id(workspace.id, Dimension.STREAM, stream),)
    time = datetime.now(UTC) - age
    counters.add(
        (counters.CounterKey(workspace.id, time, name.replace("_", ".", 1), slices), number)
        for name, number in counts.items()
    )


def fold() -> None:
    while counters.fold():
        pass


def use_quota(workspace: Workspace, used: int, *, month: datetime | None = None) -> None:
    first = (month or datetime.now(UTC)).date().replace(day=1)
    Usage.objects.update_or_create(workspace=workspace, month=first, defaults={"used": used})


def let_the_interval_pass() -> None:
    Alert.objects.update(last_triggered_at=F("last_triggered_at") - MINIMUM_INTERVAL)
