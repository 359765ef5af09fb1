"""Ninety simulated days: a stream is silent within two usual gaps when it stops, and never otherwise."""

import random
from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import pairwise
from statistics import median

import pytest

from alerts.silence import DAY, HOUR, SHIFTS, SLOT, WEEK, WEEKS, Rhythm, learn_rhythm
from tests.rows import each

LEARNED = WEEKS * WEEK
END = LEARNED + 90 * DAY
CHECKED_EVERY = 60
LIMIT = 2
CLOCK_CHANGE = LEARNED + 40 * DAY
Times = Iterator[float]


def poisson(rng: random.Random, rate: Callable[[float], float], *, most: float) -> Times:
    """Yield random times with a rate an hour, which is at most `most`."""
    time = 0.0
    while (time := time + rng.expovariate(most) * HOUR) < END:
        if rng.random() * most < rate(time):
            yield time


def every(rng: random.Random, seconds: float, *, jitter: float) -> Times:
    time = 0.0
    while time < END:
        yield time + rng.uniform(0, jitter)
        time += seconds


def office_hours(time: float) -> bool:
    """Return whether a local time is between 8 and 17 on five days of the week."""
    return time // DAY % 7 < 5 and 8 <= time % DAY / HOUR < 17


def changed_clocks(time: float) -> float:
    """Return the local time of a UTC time; summer time begins at CLOCK_CHANGE."""
    return time + HOUR if time >= CLOCK_CHANGE else time


def nightly(rng: random.Random) -> Times:
    for day in range(END // DAY):
        start = day * DAY + 2.2 * HOUR + rng.uniform(0, 1200)
        yield from (start + number * 10 for number in range(rng.randint(40, 60)))


def weekly(rng: random.Random) -> Times:
    for week in range(END // WEEK):
        start = week * WEEK + 34 * HOUR + rng.uniform(0, 8) * HOUR
        yield from (start + number for number in range(500))


def bursts(rng: random.Random) -> Times:
    for start in poisson(rng, lambda _: 0.25, most=0.25):
        yield from (start + number * 7 for number in range(rng.randint(5, 80)))


STREAMS: dict[str, Callable[[random.Random], Times]] = {
    "every ten minutes": lambda rng: every(rng, 600, jitter=60),
    "every hour": lambda rng: every(rng, HOUR, jitter=120),
    "at random": lambda rng: poisson(rng, lambda _: 3, most=3),
    "twenty a week": lambda rng: poisson(rng, lambda _: 24 / 168, most=24 / 168),
    "in bursts": lambda rng: iter(sorted(bursts(rng))),
    "in office hours": lambda rng: poisson(rng, lambda time: 12 * office_hours(time), most=12),
    "rarely in office hours": lambda rng: poisson(rng, lambda time: 2 * office_hours(time), most=2),
    "by day": lambda rng: poisson(rng, lambda time: 9 if 7 <= time % DAY / HOUR < 22 else 0.3, most=9),
    "at night": nightly,
    "once a week": weekly,
    "growing": lambda rng: poisson(rng, lambda time: 2 * 2 ** (time / DAY / 30), most=32),
    "shrinking": lambda rng: poisson(rng, lambda time: 32 * 2 ** (-time / DAY / 30), most=32),
    "by the clock": lambda rng: poisson(rng, lambda time: 12 * office_hours(changed_clocks(time)), most=12),
}


def sends_of(name: str, seed: int) -> list[int]:
    """Return the first time of each slot."""
    sends: list[int] = []
    for time in sorted(STREAMS[name](random.Random(f"{name} {seed}"))):
        if not sends or time // SLOT != sends[-1] // SLOT:
            sends.append(int(time))
    return sends


def rhythms(sends: list[int]) -> Iterator[tuple[int, int, int, Rhythm]]:
    """Yield each send from LEARNED on with its position, the next one and the rhythm, which is learned once a day."""
    rhythm, learned_on = None, -1
    for position, (send, following) in enumerate(pairwise(sends)):
        if send < LEARNED:
            continue
        if send // DAY != learned_on:
            learned_on = send // DAY
            window = sends[bisect_left(sends, send - LEARNED) : position + 1]
            rhythm = learn_rhythm(window, former=rhythm)
        assert rhythm, "four weeks are enough"
        yield position, send, following, rhythm


def silent_at(rhythm: Rhythm, last: int) -> int:
    """Return the time of the first check that finds a stream silent that stopped after its last send."""
    low, high = 0, 8 * WEEK // CHECKED_EVERY
    while low < high:
        middle = (low + high) // 2
        is_silent = rhythm.gaps(last, last + middle * CHECKED_EVERY) >= LIMIT
        low, high = (low, middle) if is_silent else (middle + 1, high)
    return last + low * CHECKED_EVERY


def stops(name: str) -> Iterator[tuple[list[int], int, int]]:
    """Yield the sends until random stops, the last one, and the time at which the stream is silent."""
    sends = sends_of(name, 0)
    cases = random.Random(name).sample(list(rhythms(sends)), 30)
    for position, last, _, rhythm in cases:
        yield sends[: position + 1], last, silent_at(rhythm, last)


@each("name", list(STREAMS))
@pytest.mark.parametrize("seed", range(3))
def test_a_stream_that_sends_is_never_silent(name, seed):
    worst = max(rhythm.gaps(send, following) for _, send, following, rhythm in rhythms(sends_of(name, seed)))
    assert worst < LIMIT


@each("name", list(STREAMS))
def test_one_that_stops_is_silent_within_two_usual_gaps(name):
    for sends, last, time in stops(name):
        # The rhythm is at most a day old.
        gaps = list(pairwise(sends[bisect_left(sends, last - LEARNED - DAY) :]))
        longest: dict[int, int] = {}
        for start, end in gaps:
            longest[end // DAY] = max(longest.get(end // DAY, 0), end - start)
        # The longest gap in four weeks, and what it exceeds that of a usual day by.
        usual = 2 * max(longest.values()) - median(longest.values())
        assert time - last <= LIMIT * usual * 1.1 + CHECKED_EVERY


@each(
    ("name", "hours"),
    [
        ("every ten minutes", 0.5),
        ("every hour", 2.2),
        # The usual gap is a day, and a week, with the differences of their beginnings.
        ("at night", 2 * 24 + 1.5),
        ("once a week", 2 * 7 * 24 + 36),
    ],
)
def test_regular_streams_are_silent_when_two_sends_are_missing(name, hours):
    for _, last, time in stops(name):
        assert 0 < time - last <= hours * HOUR


def test_a_silence_begins_in_the_hours_in_which_the_stream_usually_sends():
    for _, last, time in stops("in office hours"):
        if last % DAY < 14 * HOUR:
            assert time - last < 3 * HOUR
        # What is usual an hour earlier or later is usual.
        assert any(office_hours(time + shift) for shift in SHIFTS)
        # The next working day at the latest, however long the usual gap at this hour of the week is.
        weekend = 2 * DAY if last // DAY % 7 == 4 else 0
        assert time < last - last % DAY + weekend + DAY + 12 * HOUR


def test_an_incident_is_not_learned():
    sends = list(range(0, LEARNED, HOUR))
    rhythm = learn_rhythm(sends)
    assert rhythm
    assert rhythm.usual_seconds == HOUR
    after = [*sends, *range(LEARNED + 2 * DAY, LEARNED + 4 * DAY, HOUR)]
    later = learn_rhythm(after[bisect_left(after, after[-1] - LEARNED) :], former=rhythm)
    assert later
    assert later.usual_seconds == HOUR
    assert later.gaps(after[-1], after[-1] + 2.2 * HOUR) >= LIMIT


def test_a_new_rhythm_is_learned():
    sends = [*range(0, LEARNED, HOUR), *range(LEARNED, LEARNED + 7 * DAY, DAY)]
    former = learn_rhythm(sends[: LEARNED // HOUR])
    rhythm = learn_rhythm(sends[bisect_left(sends, sends[-1] - LEARNED) :], former=former)
    assert rhythm
    assert rhythm.usual_seconds >= DAY
    assert rhythm.gaps(sends[-1], sends[-1] + DAY) < LIMIT


@each("days", [0, 19])
def test_less_than_three_weeks_have_no_rhythm(days):
    assert learn_rhythm(list(range(0, days * DAY, HOUR))) is None


def test_the_usual_gap_of_many_sends_is_a_slot():
    rhythm = learn_rhythm(list(range(0, LEARNED, SLOT)))
    assert rhythm
    assert rhythm.usual_seconds == SLOT
    assert rhythm.gaps(LEARNED, LEARNED + 2 * SLOT) == pytest.approx(2)


def test_nights_of_a_stream_without_any_count_nothing():
    sends = [time for time in range(0, LEARNED, SLOT) if office_hours(time)]
    rhythm = learn_rhythm(sends)
    assert rhythm
    # Friday evening until Monday at eight, by clocks that may have changed.
    friday, monday = 25 * DAY + 17 * HOUR, 28 * DAY + 8 * HOUR
    assert rhythm.expected(friday, monday) == pytest.approx(0, abs=1e-6)
    # An hour earlier, Friday has an hour more, and Monday one less.
    assert rhythm.expected(friday, monday + 2 * HOUR) == pytest.approx(24)
    assert rhythm.gaps(sends[-1], monday) < LIMIT
