"""Email volume of a workspace, by the hour and day of creation (docs/decisions/0042)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from counters import counters
from counters.counters import COUNTED_EVENTS
from workspaces.models import Workspace

# Cancelled emails are never sent, scheduled ones not yet.
EXCLUDED_STATUSES = ("status.cancelled", "status.scheduled")

_REACHED_SUMS = (f"coalesce(sum(n) FILTER (WHERE key = 'reached.{name}'), 0)::bigint" for name in COUNTED_EVENTS)
# The columns of an EmailVolume.
SUMS = f"""
       coalesce(sum(n) FILTER (WHERE starts_with(key, 'status.') AND key NOT IN {EXCLUDED_STATUSES}), 0)::bigint,
       {", ".join(_REACHED_SUMS)}
"""
RANGE_VOLUME = f"SELECT now(), {SUMS} FROM ({counters.RANGE_COUNTS}) counted"  # noqa: S608 - constants
# A day without counters yields one row without a key, and zero sums.
DAILY_VOLUME = f"""
SELECT day, {SUMS}
  FROM (SELECT {counters.FIRST_DAY} + past AS day FROM generate_series(0, %(days)s - 1) AS past) requested
       LEFT JOIN ({counters.DAILY_COUNTS}) counted USING (day)
 GROUP BY day ORDER BY day
"""  # noqa: S608 - constants


@dataclass(frozen=True)
class EmailVolume:
    """The number of emails sent or queued.

    reached: by event, the number of emails that had it at least once.
    """

    total: int
    reached: Mapping[str, int]

    @property
    def rates(self) -> dict[str, float]:
        return {name: count / self.total if self.total else 0.0 for name, count in self.reached.items()}


@dataclass(frozen=True)
class RangeVolume(EmailVolume):
    """The volume of start ≤ createdAt < end."""

    start: datetime
    end: datetime


@dataclass(frozen=True)
class DailyVolume(EmailVolume):
    date: date


def read_range(workspace: Workspace, *, start: datetime | None, end: datetime | None) -> RangeVolume:
    """Return the volume of a range of whole hours, by default from the workspace's first hour to the current one."""
    first = counters.hour_of(workspace.created_at)
    start = start or min(first, end or first)
    # No counter is older than the first hour or newer than the current one, so an open end needs no clock.
    values = counters.range_values(
        min(max(start, first), counters.FOREVER), min(end or counters.FOREVER, counters.FOREVER)
    )
    ((now, total, *reached),) = counters.read(RANGE_VOLUME, workspace.id, **values)
    return RangeVolume(
        total, _reached(reached), start=start, end=end or max(counters.hour_of(now) + counters.HOUR, start)
    )


def read_days(workspace: Workspace, *, days: int) -> list[DailyVolume]:
    """Return the volume of each of the last UTC days, oldest first; today is the last."""
    rows = counters.read(DAILY_VOLUME, workspace.id, days=days)
    return [DailyVolume(total, _reached(reached), date=day) for day, total, *reached in rows]


def _reached(counts: Sequence[int]) -> dict[str, int]:
    return dict(zip(COUNTED_EVENTS, counts, strict=True))
