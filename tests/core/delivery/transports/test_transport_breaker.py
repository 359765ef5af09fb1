"""The breaker of a named transport, on a clock of its own."""

import pytest

from core.delivery.transports.transport_breaker import TransportBreaker
from core.delivery.transports.transports_file import FailoverKind
from tests.core.delivery.relaying import FakeClock

LOGIN, UNREACHABLE = FailoverKind.LOGIN, FailoverKind.UNREACHABLE


@pytest.fixture
def clock():
    return FakeClock(0.0)


def fail(breaker, kind, *subjects):
    for subject in subjects:
        breaker.record(kind, subject=subject)


def test_three_refused_logins_open_it(clock):
    breaker = TransportBreaker("smtp", clock=clock)
    fail(breaker, LOGIN, "1", "1")
    assert not breaker.is_open
    fail(breaker, LOGIN, "1")
    assert breaker.is_open


def test_a_success_between_refused_logins_starts_the_count_again(clock):
    breaker = TransportBreaker("smtp", clock=clock)
    for _ in range(5):
        fail(breaker, LOGIN, "1", "2")
        breaker.record_success()
    assert not breaker.is_open


@pytest.mark.parametrize(
    ("kind", "subjects", "is_open"),
    [
        ("smtp", "abcd", False),
        ("smtp", "aaaaa", False),
        ("smtp", "aaaab", True),
        # Dead hosts of four domains say nothing about a direct transport.
        ("direct", "aaaabbbbccccdddd", False),
        ("direct", "abcde", True),
    ],
)
def test_five_failed_connections_of_several_messages_open_it(clock, kind, subjects, is_open):
    breaker = TransportBreaker(kind, clock=clock)
    fail(breaker, UNREACHABLE, *subjects)
    assert breaker.is_open is is_open


def test_only_the_last_minute_counts(clock):
    breaker = TransportBreaker("smtp", clock=clock)
    fail(breaker, UNREACHABLE, *"abcd")
    clock.now = 61.0
    fail(breaker, UNREACHABLE, "e")
    assert not breaker.is_open


def test_probes_come_after_30_seconds_then_twice_as_long_up_to_15_minutes(clock):
    breaker = TransportBreaker("smtp", clock=clock)
    fail(breaker, LOGIN, *"abc")
    waits = []
    for _ in range(8):
        started = clock.now
        while breaker.is_open:
            clock.now += 1
        waits.append(clock.now - started)
        with breaker.call():
            assert breaker.is_open
            fail(breaker, LOGIN, "probe")
    assert waits == [30, 60, 120, 240, 480, 900, 900, 900]


def test_it_stays_open_for_two_minutes_at_least(clock):
    breaker = TransportBreaker("smtp", clock=clock)
    fail(breaker, LOGIN, *"abc")
    closed_at = []
    for second in range(200):
        clock.now = float(second)
        if breaker.is_tripped and not breaker.is_open:
            with breaker.call():
                breaker.record_success()
            closed_at += [] if breaker.is_tripped else [clock.now]
    assert closed_at == [120.0]


def test_answers_to_deliveries_that_began_before_it_opened_prove_nothing(clock):
    breaker = TransportBreaker("smtp", clock=clock)
    fail(breaker, LOGIN, *"abc")
    for _ in range(10):
        breaker.record_success()
    assert breaker.is_open
    assert not breaker.is_recovering


def test_a_failure_between_successful_probes_starts_the_count_again(clock):
    breaker = TransportBreaker("smtp", clock=clock)
    fail(breaker, LOGIN, *"abc")
    for _ in range(2):
        clock.now += 200
        breaker.record_success()
    clock.now += 200
    fail(breaker, LOGIN, "probe")
    clock.now += 2000
    breaker.record_success()
    assert breaker.is_tripped
    assert breaker.is_recovering


@pytest.fixture
def recovering(clock):
    """A breaker that has opened, and one probe has succeeded."""
    breaker = TransportBreaker("smtp", clock=clock)
    fail(breaker, UNREACHABLE, *"abcde")
    clock.now = 30.0
    with breaker.call():
        breaker.record_success()
    return breaker


def test_messages_beside_the_probes_close_it_after_two_minutes(clock, recovering):
    for second in range(31, 121):
        assert recovering.is_open
        clock.now = float(second)
        recovering.record_success()
    assert not recovering.is_tripped


def test_one_that_recovers_opens_again_after_as_many_failures_as_at_first(clock, recovering):
    clock.now = 31.0
    fail(recovering, UNREACHABLE, *"abcd")
    assert recovering.is_recovering
    fail(recovering, UNREACHABLE, "e")
    assert recovering.is_tripped
    assert not recovering.is_recovering
    clock.now += 59.0
    assert recovering.is_open
    clock.now += 1.0
    assert not recovering.is_open
