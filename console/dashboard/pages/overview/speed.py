"""Speed of a workspace or a stream: how long recipients took to their outcome, and the receivers that are slow."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.utils.formats import number_format
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from analytics.latency import OTHER, GroupLatency, LatencyGroup, LatencySummary, read_latency
from console.dashboard.pages.overview.metrics import Period
from core.workspaces.models import Workspace
from streams.models import Stream

# A receiver whose slowest twentieth takes longer is slow: people wait for a sign-in code for as long.
SLOW_SECONDS = 60
# The slowest twentieth of fewer recipients is one of them.
MIN_RECIPIENTS = 20
MAX_SLOW = 5
# From the largest: the seconds from which a unit is used, its seconds, and the text.
UNITS: tuple[tuple[float, int, str | Promise], ...] = (
    (2 * 86_400, 86_400, gettext_lazy("%(count)s days")),
    (2 * 3_600, 3_600, gettext_lazy("%(count)s h")),
    (2 * 60, 60, gettext_lazy("%(count)s min")),
    (0, 1, gettext_lazy("%(count)s s")),
)


@dataclass(frozen=True)
class LateReceiver:
    """name: empty for the receivers without a name."""

    name: str
    recipients: int
    p95: str


@dataclass(frozen=True)
class Speed:
    """The times within which shares of the recipients had their outcome, as texts, and the slow receivers."""

    p50: str
    p95: str
    within_10_seconds: float
    within_60_seconds: float
    slow: Sequence[LateReceiver]


def read_speed(workspace: Workspace, stream: Stream | None, *, period: Period) -> Speed | None:
    """Return the speed of a period, in one query; None without any outcome. stream: only its recipients."""
    start = datetime.combine(period.first, datetime.min.time(), UTC)
    by = LatencyGroup.STREAM if stream else LatencyGroup.RECEIVER
    report = read_latency(workspace, start=start, end=start + timedelta(days=period.days), by=by)
    if stream:
        found = next((group.outcome for group in report.groups if group.id == stream.slug), LatencySummary())
        return _speed(found, ())
    return _speed(report.total.outcome, report.groups)


def duration_text(seconds: float) -> str:
    """Return a duration such as `0.6 s` or `4 min`."""
    unit, text = next((unit, text) for least, unit, text in UNITS if seconds >= least)
    count = seconds / unit
    return str(text) % {"count": number_format(f"{count:.1f}" if count < 10 else f"{count:.0f}")}


def _speed(outcome: LatencySummary, receivers: Sequence[GroupLatency]) -> Speed | None:
    if outcome.p50 is None or outcome.p95 is None:
        return None
    return Speed(
        duration_text(outcome.p50),
        duration_text(outcome.p95),
        100 * (outcome.within10_seconds or 0),
        100 * (outcome.within60_seconds or 0),
        _slow(receivers),
    )


def _slow(receivers: Sequence[GroupLatency]) -> list[LateReceiver]:
    """Return the slow receivers, the slowest first."""
    slow = [
        (one.outcome.p95, one)
        for one in receivers
        if one.outcome.count >= MIN_RECIPIENTS and one.outcome.p95 is not None and one.outcome.p95 > SLOW_SECONDS
    ]
    slow.sort(key=lambda pair: (-pair[0], pair[1].id))
    return [
        LateReceiver("" if one.id == OTHER else one.name, one.outcome.count, duration_text(p95))
        for p95, one in slow[:MAX_SLOW]
    ]
