"""What became of a workspace's emails, by the hour and day of their creation (docs/decisions/0042)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from analytics import counters
from workspaces.models import Workspace

REACHED = ("delivered", "bounced", "opened", "clicked")
# Not counted: what was never to leave, and what has yet to.
LEFT_OUT = ("status.cancelled", "status.scheduled")

_REACHED_SUMS = (f"coalesce(sum(n) FILTER (WHERE key = 'reached.{name}'), 0)::bigint" for name in REACHED)
# The columns of a Volume.
SUMS = f"""
       coalesce(sum(n) FILTER (WHERE starts_with(key, 'status.') AND key NOT IN {LEFT_OUT}), 0)::bigint,
       {", ".join(_REACHED_SUMS)}
"""
SPAN = f"SELECT now(), {SUMS} FROM ({counters.BETWEEN}) counted"  # noqa: S608 - constants
# A day without a counter has one row without a key, and zeros.
DAYS = f"""
SELECT day, {SUMS}
  FROM (SELECT (now() AT TIME ZONE 'UTC')::date - back AS day FROM generate_series(0, %(days)s - 1) AS back) asked
       LEFT JOIN ({counters.DAILY}) counted USING (day)
 GROUP BY day ORDER BY day
"""  # noqa: S608


@dataclass(frozen=True)
class Volume:
    """Emails that were sent, or are to be sent now; reached has how many of them had an event at least once."""

    total: int
    reached: Mapping[str, int]

    @property
    def rates(self) -> dict[str, float]:
        return {name: count / self.total if self.total else 0.0 for name, count in self.reached.items()}


@dataclass(frozen=True)
class Span(Volume):
    """The volume of start ≤ createdAt < end."""

    start: datetime
    end: datetime


@dataclass(frozen=True)
class Day(Volume):
    date: date


def read_span(workspace: Workspace, *, start: datetime | None, end: datetime | None) -> Span:
    """Count a range of whole hours; without a start from the workspace's first hour, without an end to this hour's."""
    first = counters.hour_of(workspace.created_at)
    start = start or min(first, end or first)
    # No hour is counted before the first, and none after this one: so the range needs no clock of its own.
    values = counters.values_between(
        min(max(start, first), counters.FOREVER), min(end or counters.FOREVER, counters.FOREVER)
    )
    ((now, total, *reached),) = counters.read(SPAN, workspace.id, **values)
    return Span(total, _reached(reached), start=start, end=end or max(counters.hour_of(now) + counters.HOUR, start))


def read_days(workspace: Workspace, *, days: int) -> list[Day]:
    """Count each of the last days in UTC, oldest first; today is the last."""
    found = counters.read(DAYS, workspace.id, days=days)
    return [Day(total, _reached(reached), date=day) for day, total, *reached in found]


def _reached(counts: Sequence[int]) -> dict[str, int]:
    return dict(zip(REACHED, counts, strict=True))
