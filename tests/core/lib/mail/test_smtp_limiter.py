"""Shares of an SMTP server's sessions when they are crowded (docs/decisions/0295)."""

import math
from dataclasses import dataclass

from core.lib.mail.smtp_limiter import ConnectionLimiter
from core.lib.mail.smtp_limits import TOO_MANY_CONNECTIONS, TOO_SLOW, SessionLimits
from tests.rows import each

LIMITS = SessionLimits(sessions=20, sessions_per_peer=4, sessions_per_owner=10, arrival_seconds=1, arrival_bytes=100)
SLOW, FAST = LIMITS.crowded_bytes_per_second - 1, LIMITS.crowded_bytes_per_second


@dataclass(eq=False)
class FakeSession:
    """A session with a recipient. reply: the one with which it was ended."""

    bytes_per_second: float = math.inf
    memory_owner: str = ""
    taken_bytes: int = 0
    can_end_for_others: bool = False
    idle_seconds: float = 0.0
    reply: str = ""

    def end(self, status: str) -> None:
        self.reply = status


def open_sessions(limiter: ConnectionLimiter, *networks: str, **values) -> list[FakeSession]:
    """Open a session from each network; return those that were let in."""
    sessions = [(FakeSession(**values), network) for network in networks]
    return [session for session, network in sessions if limiter.open(session, network)]


def test_the_last_fifth_is_for_networks_that_have_none():
    limiter = ConnectionLimiter(LIMITS)
    attackers = [f"a{number % 5}" for number in range(20)]
    assert len(open_sessions(limiter, *attackers)) == 16
    assert len(open_sessions(limiter, "b", "c", "d", "e", "b", "f")) == 4
    assert (len(limiter), limiter.refused) == (20, {"all": 6})


def test_a_network_that_has_one_gets_others_while_there_is_room():
    limiter = ConnectionLimiter(LIMITS)
    assert len(open_sessions(limiter, *"aaaaabbbb")) == 8
    assert limiter.refused == {"address": 1}


@each(("rate", "is_ended"), [(0.0, True), (SLOW, True), (FAST, False), (math.inf, False)])
def test_the_slowest_message_ends_when_others_wait(rate, is_ended):
    limiter = ConnectionLimiter(LIMITS)
    open_sessions(limiter, *(f"n{number}" for number in range(19)), bytes_per_second=FAST)
    (slowest,) = open_sessions(limiter, "slow", bytes_per_second=rate)
    assert len(open_sessions(limiter, "late")) == is_ended
    assert slowest.reply == (TOO_SLOW if is_ended else "")
    assert (len(limiter), limiter.refused["all"]) == (20, 1)


def test_an_idle_session_ends_before_a_slow_message():
    limiter = ConnectionLimiter(LIMITS)
    (slow,) = open_sessions(limiter, "slow", bytes_per_second=0)
    idle = [open_sessions(limiter, f"n{n}", can_end_for_others=True, idle_seconds=n)[0] for n in range(19)]
    assert open_sessions(limiter, "late")
    assert (slow.reply, idle[18].reply, idle[17].reply) == ("", TOO_MANY_CONNECTIONS, "")


def test_the_sessions_of_an_owner_have_a_reserve_too():
    limiter = ConnectionLimiter(LIMITS)
    attackers = open_sessions(limiter, *"aaaabbbbcc")
    assert [limiter.assign(session, "ws") for session in attackers] == [True] * 8 + [True, False]
    (other,) = open_sessions(limiter, "d")
    assert limiter.assign(other, "ws")
    (last,) = open_sessions(limiter, "e")
    assert not limiter.assign(last, "ws")
    assert (limiter.assign(last, "another"), limiter.refused) == (True, {"owner": 2})
    attackers[0].bytes_per_second = SLOW
    assert limiter.assign(last, "ws")
    assert attackers[0].reply == TOO_SLOW


@each(("count", "times"), [(0, 1), (10, 1), (15, 8.5), (20, 16)])
def test_the_least_rate_rises_when_it_is_crowded(count, times):
    limiter = ConnectionLimiter(LIMITS)
    open_sessions(limiter, *(f"n{number}" for number in range(count)))
    assert limiter.least_arrival_bytes == LIMITS.arrival_bytes * times


def test_the_slowest_message_ends_for_one_that_needs_memory():
    limiter = ConnectionLimiter(LIMITS)
    (waiting,) = open_sessions(limiter, "w", bytes_per_second=0, memory_owner="a", taken_bytes=500)
    (small,) = open_sessions(limiter, "x", bytes_per_second=0, memory_owner="a", taken_bytes=50)
    (fast,) = open_sessions(limiter, "y", bytes_per_second=FAST, memory_owner="a", taken_bytes=500)
    (slow,) = open_sessions(limiter, "z", bytes_per_second=SLOW, memory_owner="b", taken_bytes=500)
    assert not limiter.end_for_memory(waiting, owner="a", more_than=50)
    assert limiter.end_for_memory(waiting, owner="", more_than=50)
    assert [session.reply for session in (waiting, small, fast, slow)] == ["", "", "", TOO_SLOW]
    assert not limiter.end_for_memory(waiting, owner="", more_than=50)
    assert limiter.end_for_memory(waiting, owner="a", more_than=0)
    assert small.reply == TOO_SLOW
