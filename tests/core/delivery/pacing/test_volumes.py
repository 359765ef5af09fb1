"""The messages of a day of one source at one receiver (docs/decisions/0366, 0367)."""

import itertools
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

from core.delivery.pacing.pace import Pace, PaceLimits
from core.delivery.pacing.pairs import LEASE_SECONDS, Pair, PairKey, PairReport
from core.delivery.pacing.volumes import LEAST_TAKEN_OVER, Volume
from core.delivery.receivers_file import built_in_receivers
from tests.rows import each

FIRST = date(2026, 12, 1)
NOON = datetime(2026, 12, 1, 12, tzinfo=UTC).timestamp()
NEW = PaceLimits(numbers=(50, 100, 250), since=FIRST)
KEY = PairKey("192.0.2.1", "google")


def day(number):
    """Return a day of an address that is new on the first one."""
    return FIRST + timedelta(days=number - 1)


class TestNumber:
    @each(("first", "today", "number"), [(1, 1, 50), (1, 2, 100), (1, 3, 250), (1, 4, None), (3, 3, 50), (3, 5, 250)])
    def test_counts_the_days_since_the_first_message(self, first, today, number):
        assert Volume().at(day(first), NEW).at(day(today), NEW).number(NEW) == number

    def test_is_none_for_a_receiver_that_is_new_to_a_warm_address(self):
        assert Volume().at(day(4), NEW).number(NEW) is None

    def test_is_zero_before_the_first_day(self):
        assert Volume().at(day(0), NEW).left(NEW) == 0

    def test_counts_from_the_day_of_the_file_if_the_pair_was_used_before(self):
        used = Volume(day(1), 30)
        assert used.at(day(2), NEW).number(NEW) == 100

    def test_begins_again_with_a_later_day_of_the_file(self):
        volume = Volume().at(day(1), NEW)
        later = replace(NEW, since=day(3))
        assert [volume.at(day(number), later).number(later) for number in (2, 3, 4)] == [0, 50, 100]

    def test_is_none_for_an_address_without_a_day(self):
        assert Volume(began_on=FIRST).at(day(1), PaceLimits(numbers=(50,))).left(PaceLimits(numbers=(50,))) is None

    def test_grows_by_two_and_a_half_times_at_most_in_the_table(self):
        numbers = built_in_receivers().default.warm_up
        assert (numbers[0], len(numbers)) == (50, 30)
        assert all(before <= after <= 2.5 * before for before, after in itertools.pairwise(numbers))


class TestTakenOver:
    def test_is_twice_what_was_sent_on_the_day_before(self):
        volume = Volume(day(1), 300).at(day(2), PaceLimits())
        assert volume.left_to_take_over(PaceLimits()) == 600
        assert Volume(day(2), 500, 300).at(day(2), PaceLimits()).left_to_take_over(PaceLimits()) == 100

    def test_is_as_much_as_on_the_first_day_of_a_source_that_was_not_used(self):
        assert Volume(day(1), 300).at(day(3), PaceLimits()).left_to_take_over(PaceLimits()) == LEAST_TAKEN_OVER
        assert Volume().at(day(3), PaceLimits(numbers=(20,))).left_to_take_over(PaceLimits(numbers=(20,))) == 20

    def test_is_within_the_number_of_a_new_source(self):
        assert Volume(day(1), 45, 0, day(1)).at(day(1), NEW).left_to_take_over(NEW) == 5


class TestMessagesOfProcesses:
    def exchange(self, pair, process="one", *, now=NOON, limits=NEW, **fields):
        values = {"open": 0, "needed": 1, "wanted": 1, **fields}
        return pair.exchange(PairReport(KEY, limits=limits, **values), process=process, number=1, now=now)

    def test_are_never_more_than_the_number_together(self):
        pair, first = self.exchange(Pair(), "one", further=30)
        pair, second = self.exchange(pair, "two", further=30)
        pair, third = self.exchange(pair, "three", further=30)
        assert (first.messages, second.messages, third.messages) == (30, 20, 0)
        assert (first.is_used_up, third.is_used_up) == (False, True)
        # The first one has 20 accepted and is sending 5.
        pair, first = self.exchange(pair, "one", accepted=20, in_use=5, further=30)
        assert (first.messages, pair.volume.sent) == (5, 20)

    def test_come_back_from_a_process_that_does_not_need_them(self):
        pair, _ = self.exchange(Pair(), "one", further=50)
        pair, _ = self.exchange(pair, "one", needed=0, wanted=0, further=0, accepted=3)
        _, other = self.exchange(pair, "two", further=50)
        assert other.messages == 47

    def test_come_back_from_a_process_that_died(self):
        pair, _ = self.exchange(Pair(), "one", further=50)
        _, early = self.exchange(pair, "two", further=50, now=NOON + LEASE_SECONDS - 1)
        _, late = self.exchange(pair, "two", further=50, now=NOON + LEASE_SECONDS)
        assert (early.messages, late.messages) == (0, 50)

    def test_begin_again_at_midnight(self):
        pair, _ = self.exchange(Pair(), accepted=50)
        assert self.exchange(pair, further=1)[1].is_used_up
        _, grant = self.exchange(pair, further=200, now=NOON + 86_400)
        assert grant.messages == 100

    def test_are_any_number_for_a_warm_address(self):
        pair, grant = self.exchange(Pair(), limits=PaceLimits(), further=1000, accepted=70)
        assert (grant.messages, grant.is_used_up, pair.volume.sent) == (None, False, 70)
        # As the version before reads it.
        assert ([len(row) for row in pair.leases_json.values()], pair.reserved_json) == ([3], {})

    def test_of_another_address_are_counted_apart(self):
        pair = Pair(volume=Volume(date(2026, 11, 30), 40))
        pair, own = self.exchange(pair, "one", limits=PaceLimits(), further=500)
        pair, first = self.exchange(pair, "two", limits=PaceLimits(), taken_over=60, further=60)
        pair, second = self.exchange(pair, "three", limits=PaceLimits(), taken_over=60, further=60)
        assert (own.messages, first.taken_over, second.taken_over) == (None, 60, 20)
        _, third = self.exchange(pair, "four", limits=PaceLimits(), taken_over=1, further=1)
        assert third.is_taken_over
        assert Pair.from_json(pair.pace.to_json(), pair.leases_json, pair.reserved_json).leases == pair.leases

    def test_limit_what_is_released(self):
        pair, _ = self.exchange(Pair(), accepted=49)
        assert pair.available(NOON, NEW) == 1
        pair, _ = self.exchange(pair, accepted=1)
        assert pair.available(NOON, NEW) == 0
        assert pair.available(NOON + 86_400, NEW) > 0


def test_an_address_returns_at_half_of_its_former_rate_and_grows_from_there():
    pace = Pace().returned(NOON, former_rate=60)
    assert pace.rate(NOON) == 30
    assert 30 < pace.rate(NOON + 120) < 60 < pace.rate(NOON + 300)
    assert Pace().returned(NOON, former_rate=0.1).rate(NOON) == 1
