"""The arithmetic of a pace: a receiver with a limit, simulated with a clock (docs/decisions/0362)."""

import itertools
import json
from dataclasses import dataclass, field

import pytest

from core.delivery.bounces.signals import NARROW, SLOW, Signal, SignalKind
from core.delivery.pacing.pace import (
    CONNECTION_SECONDS,
    FORGET_SECONDS,
    LOWEST_RATE,
    MAX_SUSPENSION_SECONDS,
    PLATEAU_SECONDS,
    UNUSED_SECONDS,
    Pace,
    PaceLimits,
)
from core.delivery.pacing.pairs import LEASE_SECONDS, PaceSignal, Pair, PairKey, PairReport
from tests.rows import each

LIMITS = PaceLimits(connections=10)
KEY = PairKey("192.0.2.1", "google")
STEP = 0.05
LATENCY = 0.2


@dataclass
class Receiver:
    """A receiver that accepts messages a minute: with a bucket, whole minutes, or the last sixty seconds."""

    kind: str
    rate: float = 60.0
    tokens: float = 1.0
    times: list[float] = field(default_factory=list)

    def pass_time(self):
        self.tokens = min(self.tokens + self.rate / 60 * STEP, max(self.rate / 12, 1))

    def accepts(self, now):
        if self.kind == "bucket":
            is_accepted = self.tokens >= 1
            self.tokens -= is_accepted
            return is_accepted
        first = now - 60 if self.kind == "sliding" else now // 60 * 60
        self.times = [time for time in self.times if time > first]
        is_accepted = len(self.times) < self.rate
        if is_accepted:
            self.times.append(now)
        return is_accepted


class Sending:
    """Any number of messages that wait for a pair, released once a second.

    accepted, refused: the times of replies.
    """

    def __init__(self, receiver):
        self.receiver = receiver
        self.pace = Pace()
        self.now = 1000.0
        self.accepted, self.refused, self.in_flight = [], [], []
        self.permits = 0

    def run(self, seconds):
        end = self.now + seconds
        next_release = self.now
        unreported = 0
        signals = []
        while self.now < end:
            self.receiver.pass_time()
            for began in [began for began in self.in_flight if began + LATENCY <= self.now]:
                self.in_flight.remove(began)
                if self.receiver.accepts(self.now):
                    self.accepted.append(self.now)
                    unreported += 1
                else:
                    self.refused.append(self.now)
                    signals.append(began)
                    self.permits = 0
            if self.now >= next_release:
                next_release += 1
                unreported, signals = self.report(unreported, signals)
            while self.permits and len(self.in_flight) < self.pace.connections:
                self.permits -= 1
                self.in_flight.append(self.now)
            self.now += STEP

    def report(self, accepted, signals):
        if accepted:
            self.pace = self.pace.record(self.now, accepted=accepted)
            self.pace = self.pace.grow(self.now - LATENCY, self.now, limits=LIMITS)
        for began in signals:
            self.pace = self.pace.slow(began, self.now)
        rate = self.pace.rate(self.now)
        self.permits = 1000 if rate is None else self.pace.available(self.now, rate=rate)
        if rate is not None:
            self.pace = self.pace.spend(self.permits, self.now, rate=rate, is_waiting=True)
        return 0, []

    def share(self, times, *, since):
        return sum(time >= since for time in times) / (self.now - since) * 60 / self.receiver.rate


@each("kind", ["bucket", "minutes", "sliding"])
def test_a_limit_is_found_within_ten_minutes_of_a_change_with_few_refused_messages(kind):
    sending = Sending(Receiver(kind))
    for rate in (60, 600, 60):
        sending.receiver.rate = rate
        sending.run(600)
        since = sending.now
        sending.run(300)
        assert 0.85 <= sending.share(sending.accepted, since=since) <= 1.05, (kind, rate)
        refused = sum(time >= since for time in sending.refused)
        assert refused <= 0.02 * sum(time >= since for time in sending.accepted), (kind, rate)
        assert sending.pace.connections <= 10


class TestSlow:
    def test_leaves_seven_tenths_of_what_was_accepted(self):
        pace = Pace().record(100.0).record(130.0, accepted=60)
        slowed = pace.slow(129.0, 130.0)
        assert slowed.rate(130.0) == pytest.approx(0.7 * 120)
        assert slowed.rate(130.0 + PLATEAU_SECONDS) == pytest.approx(120)
        assert (slowed.connections, slowed.available(130.0, rate=84)) == (1, 0)

    def test_counts_messages_in_flight_once(self):
        slowed = Pace().record(100.0, accepted=60).slow(129.0, 130.0)
        assert slowed.slow(130.0, 131.0) == slowed
        assert slowed.slow(130.5, 131.0).rate(131.0) == pytest.approx(slowed.rate(131.0) / 2)

    def test_never_goes_below_one_a_minute(self):
        pace = Pace()
        for second in range(1, 60):
            pace = pace.slow(second - 0.1, float(second))
        assert pace.rate(59.0) == LOWEST_RATE
        assert pace.connections == 1

    def test_is_forgotten_once_nothing_waits(self):
        slowed = Pace().record(100.0, accepted=60).slow(129.0, 130.0)
        at = 130.0 + PLATEAU_SECONDS + 1
        assert slowed.forgotten(at).rate(at) is None
        waiting = slowed.spend(1, at - 1, rate=60, is_waiting=True)
        assert waiting.forgotten(at) == waiting
        assert waiting.forgotten(at + UNUSED_SECONDS).rate(at + UNUSED_SECONDS) is None

    def test_follows_from_many_deferrals_with_unknown_words(self):
        pace = Pace().record(100.0, accepted=10)
        assert pace.record(110.0, deferred=9).rate(110.0) is None
        assert pace.record(110.0, deferred=10).rate(110.0) is not None
        few = Pace().record(100.0, accepted=30)
        assert few.record(110.0, deferred=20).rate(110.0) is None


@each(("rate", "tick"), [(10, 1.0), (45, 1.0), (45, 1.15), (59, 1.0), (130, 1.15), (600, 1.15)])
def test_all_of_a_rate_leaves_whatever_the_time_between_two_releases(rate, tick):
    pace, left, most, now = Pace(), 0, 0, 0.0
    while now < 600:
        now += tick
        count = pace.available(now, rate=rate)
        pace = pace.spend(count, now, rate=rate, is_waiting=True)
        left, most = left + count, max(most, count)
    assert left == pytest.approx(rate * 10, abs=2)
    assert most <= rate / 60 * 1.5 + 1


def test_one_and_a_half_seconds_of_a_rate_and_one_more_leave_after_a_pause():
    pace = Pace().spend(0, 0.0, rate=600, is_waiting=True)
    assert pace.available(3600.0, rate=600) == 16


class TestConnections:
    def test_grow_by_one_for_each_message_over_the_newest_one(self):
        pace = Pace().grow(1.0, 1.2, limits=LIMITS)
        assert pace.connections == 3
        assert pace.grow(1.1, 1.3, limits=LIMITS) == pace
        assert pace.grow(1.2, 1.4, limits=LIMITS).connections == 4

    def test_grow_by_one_a_minute_after_a_signal(self):
        pace = Pace(connections=5).narrow(9.0, 10.0)
        assert (pace.connections, pace.rate(10.0)) == (4, None)
        assert pace.narrow(10.0, 11.0) == pace
        assert pace.grow(10.0 + CONNECTION_SECONDS - 1, 80.0, limits=LIMITS).connections == 4
        assert pace.grow(10.0 + CONNECTION_SECONDS, 80.0, limits=LIMITS).connections == 5

    def test_keep_the_last_one_and_slow_down(self):
        pace = Pace(connections=1).record(100.0, accepted=60).narrow(109.0, 110.0)
        assert pace.connections == 1
        assert pace.rate(110.0) is not None

    def test_do_not_exceed_those_of_a_changed_file(self):
        assert Pace(connections=10).grow(5.0, 6.0, limits=PaceLimits(connections=4)).connections == 4


class TestSuspension:
    def test_lasts_twice_as_long_each_time_and_ends_with_one_message(self):
        pace, now = Pace(), 1000.0
        waits = []
        for _ in range(6):
            pace = pace.suspend(now, now, seconds=1800)
            waits.append(pace.suspended_until - now)
            assert pace.available(now + 1, rate=60) == 0
            now = pace.suspended_until
            assert pace.available(now, rate=pace.rate(now)) == 1
        assert waits == [1800, 3600, 7200, *[MAX_SUSPENSION_SECONDS] * 3]
        accepted = pace.record(now, accepted=1)
        assert accepted.suspend(now + 1, now + 1, seconds=1800).suspended_until == now + 1801

    def test_begins_with_a_repetition_if_the_signal_says_so(self):
        pace = Pace().record(100.0, accepted=60).suspend(109.0, 110.0, seconds=7200, after=2)
        assert not pace.is_suspended(111.0)
        assert pace.rate(110.0) is not None
        # The same signal, then another one.
        assert pace.suspend(109.5, 111.0, seconds=7200, after=2) == pace
        assert pace.suspend(111.0, 112.0, seconds=7200, after=2).suspended_until == 112.0 + 7200
        assert not pace.suspend(4000.0, 4001.0, seconds=7200, after=2).is_suspended(4002.0)

    def test_counts_messages_in_flight_once(self):
        pace = Pace().suspend(10.0, 11.0, seconds=60)
        assert pace.suspend(10.5, 12.0, seconds=60) == pace
        assert pace.suspend(10.5, 72.0, seconds=60) == pace


class TestPair:
    def exchange(self, pair, process="one", *, now=100.0, **fields):
        needed = fields.pop("needed", 1)
        values = {"open": 0, "wanted": needed, "limits": LIMITS, **fields}
        return pair.exchange(PairReport(KEY, needed=needed, **values), process=process, number=7, now=now)

    def test_divides_its_connections_among_processes(self):
        pair = Pair(Pace(connections=4))
        pair, first = self.exchange(pair, "one", needed=9)
        pair, second = self.exchange(pair, "two", needed=9)
        assert (first.connections, second.connections) == (4, 0)
        # The first one learns that others wait.
        pair, first = self.exchange(pair, "one", needed=9, open=4)
        assert first.connections == 2
        pair, first = self.exchange(pair, "one", needed=9, open=2)
        pair, second = self.exchange(pair, "two", needed=9)
        assert (first.connections, second.connections) == (2, 2)

    def test_divides_its_connections_equally_among_three(self):
        pair = Pair(Pace(connections=12))
        for process in ("one", "two", "three"):
            pair, grant = self.exchange(pair, process, needed=12, open=0)
        assert grant.connections == 0
        pair, grant = self.exchange(pair, "one", needed=12, open=12)
        assert grant.connections == 4

    def test_never_grants_more_than_it_has(self):
        pair = Pair(Pace(connections=3))
        for turn, process in itertools.product(range(5), "abcdefgh"):
            pair, grant = self.exchange(pair, process, needed=5, now=100.0 + turn)
            assert sum(lease.connections for lease in pair.leases.values()) <= 3
            assert grant.connections <= 3

    def test_gets_idle_connections_back_if_others_need_them(self):
        pair = Pair(Pace(connections=1))
        pair, _ = self.exchange(pair, "one")
        pair, kept = self.exchange(pair, "one", needed=0, wanted=1, open=1)
        assert kept.connections == 1
        pair, refused = self.exchange(pair, "two")
        assert refused.connections == 0
        pair, taken = self.exchange(pair, "one", needed=0, wanted=1, open=1)
        assert taken.connections == 0
        pair, granted = self.exchange(pair, "two")
        assert granted.connections == 1

    def test_frees_the_connections_of_a_process_that_died_after_its_lease(self):
        pair, _ = self.exchange(Pair(Pace(connections=1)), "one")
        pair, refused = self.exchange(pair, "two", now=100.0 + LEASE_SECONDS - 1)
        _, granted = self.exchange(pair, "two", now=100.0 + LEASE_SECONDS)
        assert (refused.connections, granted.connections) == (0, 1)

    def test_tells_every_process_of_a_signal(self):
        signal = PaceSignal(SLOW, began=1.0, reply="421 4.7.28 slow down")
        pair, grant = self.exchange(Pair(), "one", signals=(signal,), accepted=60)
        assert grant.is_limited
        _, other = self.exchange(pair, "two")
        assert other.is_limited
        suspended = PaceSignal(Signal(SignalKind.SUSPEND, seconds=60.0), began=0.0)
        pair, _ = self.exchange(pair, "one", signals=(suspended,), now=110.0)
        # Asked again within the time of a lease, since the staff may end the suspension.
        assert self.exchange(pair, "two", now=120.0)[1].suspended == pytest.approx(10.0)
        assert self.exchange(pair, "two", now=165.0)[1].suspended == pytest.approx(5.0)

    def test_counts_what_other_processes_sent_without_knowing_of_it_once(self):
        pair, _ = self.exchange(Pair(), accepted=60)
        pair, _ = self.exchange(pair, signals=(PaceSignal(SLOW, began=1.0),), now=130.0)
        rate = pair.pace.rate(130.5)
        later = PaceSignal(SLOW, began=0.1)
        unknowing, _ = self.exchange(pair, "two", signals=(later,), known=0.9, now=130.5)
        assert unknowing.pace.rate(130.5) == rate
        knowing, _ = self.exchange(pair, "two", signals=(later,), known=0.2, now=130.5)
        assert knowing.pace.rate(130.5) == pytest.approx(rate / 2)

    def test_begins_small_after_a_day(self):
        pair, _ = self.exchange(Pair(Pace(connections=8)), signals=(PaceSignal(NARROW, began=0.0),))
        assert pair.at(100.0 + FORGET_SECONDS).pace.connections == 7
        assert pair.at(101.0 + FORGET_SECONDS).pace == Pace()

    def test_obeys_the_staff(self):
        assert self.exchange(Pair(is_stopped=True))[1].suspended > 0
        assert Pair(is_stopped=True).available(100.0, LIMITS) == 0
        pinned = Pair(pinned=30.0)
        assert self.exchange(pinned)[1].is_limited
        assert pinned.rate(100.0, LIMITS) == 30.0

    def test_survives_storage(self):
        pair, _ = self.exchange(Pair(), signals=(PaceSignal(SLOW, began=0.0),), accepted=3)
        stored = json.loads(json.dumps([pair.pace.to_json(), pair.leases_json, pair.reserved_json]))
        assert Pair.from_json(*stored, updated_at=pair.updated_at, volume=pair.volume) == pair
        # A later version may have stored more.
        assert Pace.from_json({"unknown": 1}) == Pace()
