"""Outcomes of emails by day, of a workspace or of one of its slices (docs/decisions/0128)."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date
from uuid import UUID

from analytics.streams import stream_counts
from core.counters import counters
from core.workspaces.models import Workspace

# Each counted email has one outcome. Cancelled emails are never sent, scheduled ones not yet.
OUTCOMES = {
    "delivered": ("status.delivered", "status.opened", "status.clicked"),
    "sent": ("status.sent",),
    "queued": ("status.queued",),
    "bounced": ("status.bounced",),
    "failed": ("status.failed",),
}
# An email that had the event at least once.
EVENTS = {name: (f"reached.{name}",) for name in ("delivered", "bounced", "opened", "clicked")}
# Recipients as the limits of the reputation count them (docs/decisions/0065).
RATED = {name: (f"rated.{name}",) for name in ("sent", "bounced", "complained")}
# Recipients that complained, those of the simulator among them.
COMPLAINED = {"complained": ("rated.complained", "simulated.complained")}

WORKSPACE_COUNTS = """
    SELECT day, key, count AS n FROM analytics_tallyday
     WHERE workspace_id = %(workspace)s AND day BETWEEN %(first)s AND %(last)s
    UNION ALL
    SELECT (hour AT TIME ZONE 'UTC')::date, key, change FROM analytics_tallydelta
     WHERE workspace_id = %(workspace)s AND hour >= %(first)s::timestamp AT TIME ZONE 'UTC'
"""
SLICE_COUNTS = """
    SELECT day, key, count AS n FROM analytics_slice WHERE slice = %(slice)s AND day BETWEEN %(first)s AND %(last)s
    UNION ALL
    SELECT (hour AT TIME ZONE 'UTC')::date, key, change FROM analytics_tallydelta
     WHERE workspace_id = %(workspace)s AND hour >= %(first)s::timestamp AT TIME ZONE 'UTC'
       AND slices @> ARRAY[%(slice)s]
"""
# Counts of several slices, with rows (slice, key, n).
COUNTS_OF_SLICES = """
    SELECT slice, key, count AS n FROM analytics_slice
     WHERE slice = ANY(%(slices)s::uuid[]) AND day BETWEEN %(first)s AND %(last)s AND key = ANY(%(keys)s)
    UNION ALL
    SELECT slice, key, change FROM analytics_tallydelta, unnest(slices) AS slice
     WHERE workspace_id = %(workspace)s AND slice = ANY(%(slices)s::uuid[]) AND key = ANY(%(keys)s)
       AND hour >= %(first)s::timestamp AT TIME ZONE 'UTC' AND hour < (%(last)s::date + 1)::timestamp AT TIME ZONE 'UTC'
"""
_SUMS = ", ".join(
    f"coalesce(sum(n) FILTER (WHERE key = ANY('{{{{{','.join(keys)}}}}}')), 0)::bigint"
    for group in (OUTCOMES, EVENTS, RATED, COMPLAINED)
    for keys in group.values()
)
BY_DAY = f"""
SELECT day, {_SUMS} FROM (SELECT generate_series(%(first)s::date, %(last)s::date, '1 day')::date AS day) requested
       LEFT JOIN ({{counts}}) counted USING (day)
 GROUP BY day ORDER BY day
"""  # noqa: S608 - constants
BY_SLICE = f"SELECT slice, key, sum(n)::bigint FROM ({COUNTS_OF_SLICES}) counted GROUP BY slice, key"  # noqa: S608
# The counters that a total needs, and those of events.
TOTAL_KEYS = frozenset(key for keys in OUTCOMES.values() for key in keys)
COMPARED_KEYS = [*sorted(TOTAL_KEYS), *(key for keys in EVENTS.values() for key in keys)]


@dataclass(frozen=True)
class DayOutcomes:
    """The emails of a UTC day: outcomes by OUTCOMES, reached by EVENTS; recipients by RATED, and complaints."""

    day: date
    outcomes: dict[str, int]
    reached: dict[str, int]
    rated: dict[str, int]
    complained: int

    @property
    def total(self) -> int:
        return sum(self.outcomes.values())


def read_outcomes(workspace: Workspace, *, first: date, last: date, slice_: UUID | None = None) -> list[DayOutcomes]:
    """Return the outcomes of each day of a range, oldest first. The time depends on the number of days only."""
    sql = BY_DAY.format(counts=SLICE_COUNTS if slice_ else WORKSPACE_COUNTS)
    rows = counters.read(sql, workspace.id, first=first, last=last, slice=slice_)
    return [_day_outcomes(day, counts) for day, *counts in rows]


def read_stream_outcomes(workspace: Workspace, slug: str, *, first: date, last: date) -> list[DayOutcomes]:
    """Return the outcomes of each day of one stream. Raises StreamNotFound."""
    counted, values = stream_counts(workspace, slug, first="%(first)s::date", end="(%(last)s::date + 1)")
    rows = counters.read(BY_DAY.format(counts=counted), workspace.id, first=first, last=last, **values)
    return [_day_outcomes(day, counts) for day, *counts in rows]


def sum_outcomes(days: Sequence[DayOutcomes]) -> dict[str, int]:
    """Return the sums of a period: the total, and each of EVENTS."""
    events = {name: sum(day.reached[name] for day in days) for name in EVENTS}
    return {"total": sum(day.total for day in days), **events}


def compare_slices(
    workspace: Workspace, slices: Collection[UUID], *, first: date, last: date
) -> dict[UUID, dict[str, int]]:
    """Return the sums of a range of days by slice, as sum_outcomes does, in one query; none for one without emails."""
    sums: dict[UUID, dict[str, int]] = defaultdict(lambda: dict.fromkeys(("total", *EVENTS), 0))
    values = {"slices": [str(slice_) for slice_ in slices], "keys": COMPARED_KEYS}
    for slice_, key, count in counters.read(BY_SLICE, workspace.id, first=first, last=last, **values):
        sums[slice_]["total" if key in TOTAL_KEYS else key.removeprefix("reached.")] += count
    return dict(sums)


def _day_outcomes(day: date, counts: list[int]) -> DayOutcomes:
    numbers = iter(counts)
    outcomes, reached, rated = ({name: next(numbers) for name in group} for group in (OUTCOMES, EVENTS, RATED))
    return DayOutcomes(day, outcomes, reached, rated, next(numbers))
