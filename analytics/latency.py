"""Latencies of a workspace's recipients in a range of hours, as percentiles, also by stream or receiver.

See docs/decisions/0380.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum

from django.conf import settings

from core.counters import counters
from core.counters.latency import Latency, histogram_id, parse_name, percentile, share_within
from core.lib.ids import from_uuid, to_uuid
from core.lib.sql import local_settings, run
from core.workspaces.models import Workspace
from streams.models import MAIN
from streams.services import read_streams

# As for metrics (docs/decisions/0364), the receivers that are not in the table together.
OTHER = "other"
# Whole days from the daily counters, hours at the ends, and deltas that are not folded yet (docs/decisions/0042).
READ = """
SELECT workspace_id, key, sum(n)::bigint FROM (
    SELECT workspace_id, key, count AS n FROM analytics_tallyday
     WHERE workspace_id = ANY(%(histograms)s) AND day >= %(first_day)s AND day < %(last_day)s
    UNION ALL
    SELECT workspace_id, key, count FROM analytics_tally
     WHERE workspace_id = ANY(%(histograms)s) AND hour >= %(start)s AND hour < %(morning)s
    UNION ALL
    SELECT workspace_id, key, count FROM analytics_tally
     WHERE workspace_id = ANY(%(histograms)s) AND hour >= %(evening)s AND hour < %(end)s
    UNION ALL
    SELECT workspace_id, key, change FROM analytics_tallydelta
     WHERE workspace_id = ANY(%(histograms)s) AND hour >= %(start)s AND hour < %(end)s
) counted GROUP BY 1, 2
"""


class LatencyGroup(StrEnum):
    STREAM = "stream"
    RECEIVER = "receiver"


@dataclass(frozen=True)
class LatencySummary:
    """One latency of a group: the number of recipients by bucket, and what follows from it; None without any."""

    histogram: Counter[int] = field(default_factory=Counter)

    @property
    def count(self) -> int:
        return self.histogram.total()

    @property
    def p50(self) -> float | None:
        return percentile(self.histogram, 0.5)

    @property
    def p95(self) -> float | None:
        return percentile(self.histogram, 0.95)

    @property
    def p99(self) -> float | None:
        return percentile(self.histogram, 0.99)

    @property
    def within10_seconds(self) -> float | None:
        return share_within(self.histogram, 10)

    @property
    def within60_seconds(self) -> float | None:
        return share_within(self.histogram, 60)

    @property
    def within10_minutes(self) -> float | None:
        return share_within(self.histogram, 600)


@dataclass(frozen=True)
class GroupLatency:
    """The latencies of a group of recipients.

    id: of a stream, or the key of a receiver; empty for all.
    """

    id: str
    name: str
    first_attempt: LatencySummary
    outcome: LatencySummary


@dataclass(frozen=True)
class LatencyReport:
    """The latencies that ended in start ≤ time < end. groups: the largest first."""

    start: datetime
    end: datetime
    total: GroupLatency
    groups: list[GroupLatency]


# The number of recipients by latency and bucket.
Counts = Counter[tuple[Latency, int]]


def read_latency(
    workspace: Workspace, *, start: datetime, end: datetime, by: LatencyGroup | None = None
) -> LatencyReport:
    """Return the latencies of a range of whole hours, at most counters.FOREVER. by: also of each of these groups."""
    names = _group_names(workspace, by)
    rest = MAIN if by is LatencyGroup.STREAM else OTHER
    ids = {name: _histogram_of(workspace, by, name) for name in names if by and name != rest}
    whole = histogram_id(workspace.id)
    counts = _read_counts([whole, *ids.values()], start=start, end=end)
    by_name = {name: counts[id_] for name, id_ in ids.items()}
    if by:
        # No recipient is in two groups, so that the others are in none that has a histogram.
        by_name[rest] = counts[whole] - sum(by_name.values(), Counter())
    groups = [_group(name, names[name], group) for name, group in by_name.items() if group]
    groups.sort(key=lambda group: (-group.outcome.count, group.id))
    return LatencyReport(start, end, _group("", "", counts[whole]), groups)


def _group_names(workspace: Workspace, by: LatencyGroup | None) -> dict[str, str]:
    """Return the names of the groups for people, by id."""
    if by is LatencyGroup.STREAM:
        return {slug: stream.name for slug, stream in read_streams(workspace).items()}
    if by is LatencyGroup.RECEIVER:
        return {**{one.key: one.name for one in settings.RECEIVERS.receivers}, OTHER: OTHER}
    return {}


def _histogram_of(workspace: Workspace, by: LatencyGroup, name: str) -> str:
    if by is LatencyGroup.STREAM:
        return histogram_id(workspace.id, stream=name)
    return histogram_id(workspace.id, receiver=name)


def _read_counts(histograms: Iterable[str], *, start: datetime, end: datetime) -> defaultdict[str, Counts]:
    """Return the counts of histograms by id."""
    ids = [to_uuid(histogram, prefix="ws_") for histogram in histograms]
    # No counter is outside of these times. With the current hour, a range has all of today, which one row per key has.
    end = counters.FOREVER if end > counters.hour_of(datetime.now(UTC)) else max(end, counters.ALL_TIME)
    start = min(max(start, counters.ALL_TIME), end)
    counts: defaultdict[str, Counts] = defaultdict(Counter)
    # Compiling the statement takes longer than running it.
    with local_settings({"jit": "off"}):
        rows = run(READ, {"histograms": ids, **counters.range_values(start, end)})
    for histogram, key, count in rows:
        counts[from_uuid(histogram, prefix="ws_")][parse_name(key)] = count
    return counts


def _group(id_: str, name: str, counts: Counts) -> GroupLatency:
    first_attempt, outcome = (
        LatencySummary(Counter({bucket: count for (kind, bucket), count in counts.items() if kind is latency}))
        for latency in (Latency.FIRST_ATTEMPT, Latency.OUTCOME)
    )
    return GroupLatency(id_, name, first_attempt, outcome)
