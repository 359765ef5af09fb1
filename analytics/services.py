"""What became of a workspace's emails, by the hour and day of their creation (docs/decisions/0042)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime

from django.db import connection

from analytics import tally
from workspaces.models import Workspace

REACHED = ("delivered", "bounced", "opened", "clicked")
# Not counted: what was never to leave, and what has yet to.
LEFT_OUT = frozenset({"status.cancelled", "status.scheduled"})


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
    now = _now()
    first, last = tally.hour_of(workspace.created_at), tally.hour_of(now) + tally.HOUR
    start = start or min(first, end or first)
    end = end or max(last, start)
    counted = tally.between(workspace.id, start=max(start, first), end=min(end, last))
    return Span(_total(counted), _reached(counted), start=start, end=end)


def read_days(workspace: Workspace, *, days: int) -> list[Day]:
    """Count each of the last days in UTC, oldest first; today is the last."""
    found = tally.daily(workspace.id, days=days)
    return [Day(_total(counted), _reached(counted), date=day) for day, counted in found.items()]


def _total(counted: Mapping[str, int]) -> int:
    return sum(count for key, count in counted.items() if key.startswith("status.") and key not in LEFT_OUT)


def _reached(counted: Mapping[str, int]) -> dict[str, int]:
    return {name: counted.get(f"reached.{name}", 0) for name in REACHED}


def _now() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT now()")
        (now,) = cursor.fetchone()
    return now  # type: ignore[no-any-return]
