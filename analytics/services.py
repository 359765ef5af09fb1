"""Email volume of a workspace, by the hour and day of creation (docs/decisions/0042)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from analytics.streams import stream_counts
from core.counters import counters
from core.counters.counters import COUNTED_EVENTS
from core.workspaces.models import Workspace

DAY = timedelta(days=1)
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
BY_DAY = f"""
SELECT day, {SUMS}
  FROM (SELECT {counters.FIRST_DAY} + past AS day FROM generate_series(0, %(days)s - 1) AS past) requested
       LEFT JOIN ({{counts}}) counted USING (day)
 GROUP BY day ORDER BY day
"""  # noqa: S608 - constants
DAILY_VOLUME = BY_DAY.format(counts=counters.DAILY_COUNTS)


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


def read_range(workspace: Workspace, *, start: datetime | None, end: datetime | None, stream: str = "") -> RangeVolume:
    """Return the volume of a range of whole hours, by default from the workspace's first hour to the current one.

    stream: count its emails only, in a range of whole days. Raises StreamNotFound.
    """
    if stream:
        return _read_stream_range(workspace, stream, start=start, end=end)
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


def _read_stream_range(
    workspace: Workspace, stream: str, *, start: datetime | None, end: datetime | None
) -> RangeVolume:
    first = day_of(workspace.created_at)
    start = start or min(first, end or first)
    counted, values = stream_counts(workspace, stream, first="%(first)s::date", end="%(end)s::date")
    days = {"first": max(start, first).date(), "end": min(end or counters.FOREVER, counters.FOREVER).date()}
    sql = f"SELECT now(), {SUMS} FROM ({counted}) counted"  # noqa: S608 - constants
    ((now, total, *reached),) = counters.read(sql, workspace.id, **values, **days)
    return RangeVolume(total, _reached(reached), start=start, end=end or max(day_of(now) + DAY, start))


def day_of(time: datetime) -> datetime:
    """Return the start of the UTC day of a time."""
    return counters.hour_of(time).replace(hour=0)


def read_days(workspace: Workspace, *, days: int, stream: str = "") -> list[DailyVolume]:
    """Return the volume of each of the last UTC days, oldest first; today is the last.

    stream: count its emails only; empty for all. Raises StreamNotFound.
    """
    sql, values = DAILY_VOLUME, dict[str, Any]()
    if stream:
        counted, values = stream_counts(workspace, stream, first=counters.FIRST_DAY, end="'infinity'::date")
        sql = BY_DAY.format(counts=counted)
    rows = counters.read(sql, workspace.id, days=days, **values)
    return [DailyVolume(total, _reached(reached), date=day) for day, total, *reached in rows]


def _reached(counts: Sequence[int]) -> dict[str, int]:
    return dict(zip(COUNTED_EVENTS, counts, strict=True))
