"""Volumes: the messages that one source sends to one receiver in a UTC day (docs/decisions/0366, 0367).

All functions are pure: the day is given by the caller.
"""

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta

from core.delivery.pacing.pace import PaceLimits

# What a source may take over at a receiver that it has sent nothing to, if the table has no number for it.
LEAST_TAKEN_OVER = 50
# The most that it takes over, as a multiple of its messages of the day before.
TAKEN_OVER = 2


def day_of(now: float) -> date:
    """Return the UTC day of a time. now: seconds since 1970."""
    return datetime.fromtimestamp(now, UTC).date()


@dataclass(frozen=True)
class Volume:
    """The messages of a pair that were accepted.

    day: the last one on which it was used; None if it never was.
    sent, before: on that day, and on the one before.
    began_on: the first day at this receiver of an address that is new; None for a warm one.
    """

    day: date | None = None
    sent: int = 0
    before: int = 0
    began_on: date | None = None

    def at(self, today: date, limits: PaceLimits) -> "Volume":
        """Return the volume as of a day; that of a new address begins with it."""
        began_on = self._beginning(today, limits)
        if self.day == today:
            return replace(self, began_on=began_on)
        before = self.sent if self.day == today - timedelta(days=1) else 0
        return Volume(today, 0, before, began_on)

    def number(self, limits: PaceLimits) -> int | None:
        """Return how many messages may be accepted on the day, None for any number; 0 before the first day."""
        if limits.since is None or self.began_on is None or self.day is None:
            return None
        age = (self.day - self.began_on).days
        if age < 0:
            return 0
        return limits.numbers[age] if age < len(limits.numbers) else None

    def left(self, limits: PaceLimits) -> int | None:
        """Return how many of them are left, None for any number."""
        number = self.number(limits)
        return None if number is None else max(number - self.sent, 0)

    def left_to_take_over(self, limits: PaceLimits) -> int:
        """Return how many messages may leave that belong to another address, which is listed or suspended."""
        least = limits.numbers[0] if limits.numbers else LEAST_TAKEN_OVER
        most = max(TAKEN_OVER * self.before, least) - self.sent
        left = self.left(limits)
        return max(most if left is None else min(most, left), 0)

    def _beginning(self, today: date, limits: PaceLimits) -> date | None:
        """Return the first day of the pair; None for one that begins when the address is not new any more.

        A pair that was in use before the address had a day counts from that day, and one that is new begins again if
        the address has a later day.
        """
        if limits.since is None:
            return None
        if self.began_on:
            return max(self.began_on, limits.since)
        if (today - limits.since).days >= len(limits.numbers):
            return None
        return limits.since if self.day else max(limits.since, today)
