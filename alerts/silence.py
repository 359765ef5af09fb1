"""Silence of a stream, measured by the gaps between its own emails (docs/decisions/0385).

A gap is measured in sends that would usually happen in it, not in hours: a night counts nothing in a stream that never
sends at night. Times are seconds since 1970, and hours of the week begin with the first hour of 1970.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from statistics import median

HOUR, DAY, WEEK = 3600, 24 * 3600, 7 * 24 * 3600
WEEK_HOURS = WEEK // HOUR
# The period from which a rhythm is learned.
WEEKS = 4
# Nearly three weeks: what is sent once a week may be a day early.
MINIMUM_SPAN = 20 * DAY
# Several emails within this time are one send: no gap is shorter.
SLOT = 300
# Clocks change by an hour: what is usual an hour earlier or later is usual.
SHIFTS = (-HOUR, 0, HOUR)
# A gap of so many usual ones was an incident, which nobody expects again, unless there are more than MOST_INCIDENTS.
INCIDENT_GAPS, MOST_INCIDENTS = 2, 2

# The times of a send and of the next one.
Gap = tuple[int, int]


@dataclass(frozen=True)
class Rhythm:
    """The usual sends of a stream.

    rates: the mean number of sends in each hour of the week.
    usual_sends: the usual gap in expected sends, which tells nights from days.
    usual_seconds: the usual gap in seconds, at any hour.
    """

    rates: Sequence[float]
    usual_sends: float
    usual_seconds: float

    def gaps(self, last: float, now: float) -> float:
        """Return the number of usual gaps that a time without sends is."""
        return max(self.expected(last, now) / self.usual_sends, (now - last) / self.usual_seconds)

    def expected(self, start: float, end: float) -> float:
        """Return the number of sends that usually happen between two times, at least."""
        return min(self._until(end + shift) - self._until(start + shift) for shift in SHIFTS)

    @cached_property
    def _sums(self) -> Sequence[float]:
        return list(accumulate(self.rates, initial=0.0))

    def _until(self, time: float) -> float:
        weeks, seconds = divmod(time, WEEK)
        hour, rest = divmod(seconds, HOUR)
        return weeks * self._sums[-1] + self._sums[int(hour)] + self.rates[int(hour)] * rest / HOUR


def learn_rhythm(sends: Sequence[int], *, former: Rhythm | None = None) -> Rhythm | None:
    """Return the rhythm of sends in ascending order, of WEEKS before the last one; None of less than MINIMUM_SPAN.

    former: the rhythm that they had before.
    """
    if not sends or sends[-1] - sends[0] < MINIMUM_SPAN:
        return None
    counts = [[0] * WEEK_HOURS for _ in range(WEEKS)]
    for send in sends:
        counts[_week(send, sends[-1])][send % WEEK // HOUR] += 1
    others = [Rhythm(_mean([*counts[:week], *counts[week + 1 :]]), 1.0, 1.0) for week in range(WEEKS)]
    fastest = max(max(rhythm.rates) for rhythm in others) / HOUR
    longest_sends, longest_seconds = dict[int, float](), dict[int, float]()
    for start, end in _without_incidents(list(pairwise(sends)), former):
        day = end // DAY
        longest_seconds[day] = max(longest_seconds.get(day, 0.0), end - start)
        # Most gaps are too short to be the longest of a day, whenever they were.
        if (end - start) * fastest > 1.001 * longest_sends.get(day, 0.0):
            # By the sends of the other weeks: a gap lowers those of its own.
            expected = others[_week(end, sends[-1])].expected(start, end)
            longest_sends[day] = max(longest_sends.get(day, 0.0), expected)
    usual_sends = _usual(longest_sends)
    return Rhythm(_mean(counts), usual_sends, _usual(longest_seconds)) if usual_sends else None


def _week(send: int, last: int) -> int:
    return min((last - send) // WEEK, WEEKS - 1)


def _mean(weeks: Sequence[Sequence[int]]) -> list[float]:
    return [sum(hour) / len(weeks) for hour in zip(*weeks, strict=True)]


def _without_incidents(gaps: list[Gap], former: Rhythm | None) -> list[Gap]:
    if former is None:
        return gaps
    # No shorter gap is one of so many usual ones, whenever it was.
    shortest = INCIDENT_GAPS * min(former.usual_seconds, former.usual_sends / max(former.rates) * HOUR)
    long = [gap for gap in gaps if gap[1] - gap[0] >= shortest]
    incidents = {gap for gap in long if former.gaps(*gap) >= INCIDENT_GAPS}
    return [gap for gap in gaps if gap not in incidents] if len(incidents) <= MOST_INCIDENTS else gaps


def _usual(longest: Mapping[int, float]) -> float:
    """Return the longest gap of all days, and what it exceeds that of a usual day by: it may be exceeded as well."""
    return 2 * max(longest.values()) - median(longest.values())
