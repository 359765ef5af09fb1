"""Email volume of a workspace, by the hour and day of creation (docs/decisions/0042)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from counters import counters
from counters.counters import COMPLAINED_KEY, COUNTED_EVENTS
from workspaces.models import Workspace

# Cancelled emails are never sent, scheduled ones not yet.
EXCLUDED_STATUSES = ("status.cancelled", "status.scheduled")

_REACHED_SUMS = (f"coalesce(sum(n) FILTER (WHERE key = 'reached.{name}'), 0)::bigint" for name in COUNTED_EVENTS)
# The columns of an EmailVolume.
SUMS = f"""
       coalesce(sum(n) FILTER (WHERE starts_with(key, 'status.') AND key NOT IN {EXCLUDED_STATUSES}), 0)::bigint,
       coalesce(sum(n) FILTER (WHERE key = '{COMPLAINED_KEY}'), 0)::bigint,
       {", ".join(_REACHED_SUMS)}
"""
RANGE_VOLUME = f"SELECT now(), {SUMS} FROM ({counters.RANGE_COUNTS}) counted"  # noqa: S608 - constants


def _daily_volume(first: str, last: str) -> str:
    """Return the statement about the days between two dates, given in SQL.

    A day without counters yields one row without a key, and zero sums.
    """
    return f"""
SELECT day, {SUMS}
  FROM (SELECT {first} + past AS day FROM generate_series(0, {last} - ({first})) AS past) requested
       LEFT JOIN ({counters.DAILY_COUNTS.format(first=first, last=last)}) counted USING (day)
 GROUP BY day ORDER BY day
"""  # noqa: S608


TODAY = "(now() AT TIME ZONE 'UTC')::date"
DAILY_VOLUME = _daily_volume(f"{TODAY} - %(days)s + 1", TODAY)
DATES_VOLUME = _daily_volume("%(first)s::date", "%(last)s::date")


@dataclass(frozen=True)
class EmailVolume:
    """The number of emails sent or queued.

    complained: spam complaints. reached: by event, the number of emails that had it at least once.
    """

    total: int
    complained: int
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
    ((now, total, complained, *reached),) = counters.read(RANGE_VOLUME, workspace.id, **values)
    return RangeVolume(
        total, complained, _reached(reached), start=start, end=end or max(counters.hour_of(now) + counters.HOUR, start)
    )


def read_days(workspace: Workspace, *, days: int) -> list[DailyVolume]:
    """Return the volume of each of the last UTC days, oldest first; today is the last."""
    return _read_daily(DAILY_VOLUME, workspace, days=days)


def read_dates(workspace: Workspace, *, first: date, last: date) -> list[DailyVolume]:
    """Return the volume of each UTC day of a range, oldest first."""
    return _read_daily(DATES_VOLUME, workspace, first=first, last=last)


def _read_daily(sql: str, workspace: Workspace, **values: Any) -> list[DailyVolume]:
    rows = counters.read(sql, workspace.id, **values)
    return [DailyVolume(total, complained, _reached(reached), date=day) for day, total, complained, *reached in rows]


def _reached(counts: Sequence[int]) -> dict[str, int]:
    return dict(zip(COUNTED_EVENTS, counts, strict=True))
