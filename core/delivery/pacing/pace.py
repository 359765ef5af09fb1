"""Pace: the connections and the messages a minute that one source may use at one receiver (docs/decisions/0362).

A source is the address that a direct transport connects from; a receiver is the organisation that runs the mail hosts
of a domain. All functions are pure: times are seconds of one clock, given by the caller.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from typing import Any

from core.delivery.receivers import Receiver

# A new pair, and one that was not used for a day.
INITIAL_CONNECTIONS = 2
FORGET_SECONDS = 86_400.0
# After a pair was narrowed, one further connection is tried in this time.
CONNECTION_SECONDS = 60.0

# What a slow signal leaves of the rate at which messages were accepted, and a second one within REPEAT_SECONDS.
SLOWER = 0.7
MUCH_SLOWER = 0.5
REPEAT_SECONDS = 60.0
# Messages a minute.
LOWEST_RATE = 1.0
# The curve of RFC 9438, section 4.2: back at the last good rate after PLATEAU_SECONDS, then faster and faster. With
# this growth, ten times the rate is found within ten minutes.
PLATEAU_SECONDS = 120.0
GROWTH = 0.3
# A rate that was learnt from a few messages grows as one of so many a minute.
LEAST_GROWING_RATE = 20.0
# A rate is forgotten when nothing waited for it so long.
UNUSED_SECONDS = 60.0
# Messages may leave together as in this time.
BURST_SECONDS = 1.5

# The window in which accepted and deferred messages are counted.
SLOT_SECONDS = 5.0
SLOTS = 12
# Fewer seconds do not give a rate.
FEWEST_SECONDS = 5.0
# With this many attempts in the window, half of them deferred are a signal, whatever the texts say.
ATTEMPTS_FOR_DOUBT = 20

# The longest suspension by repetition. The first one is that of the signal.
MAX_SUSPENSION_SECONDS = 4 * 3600.0
# Signals that suspend by repetition count for this time.
WARNING_SECONDS = 3600.0


@dataclass(frozen=True)
class PaceLimits:
    """The limits of a pair.

    per_minute: messages, None for any number.
    numbers: the messages that a new address sends to the receiver on each of its first days.
    since: the first day of the address; None for one that is not new.
    """

    connections: int = 10
    per_minute: float | None = None
    numbers: tuple[int, ...] = ()
    since: date | None = None


def limits_at(receiver: Receiver, *, since: date | None) -> PaceLimits:
    """Return the limits of a pair. since: the first day of a source that is new."""
    return PaceLimits(receiver.connections, receiver.per_minute, receiver.warm_up, since)


@dataclass(frozen=True)
class Pace:
    """What is known of a pair.

    connections: that may be open.
    grown_at: when the last one was added.
    narrowed_at: when one was last taken away; 0 if never. Until then each message that was accepted over the newest
    connection adds one, later one in CONNECTION_SECONDS.
    began_at: when the first message was counted.
    low_rate, good_rate, slowed_at: messages a minute right after the last slow signal and before it, and its time;
    slowed_at is None without a learnt rate.
    waited_at: when something last waited for the rate.
    suspended_until: nothing begins before this time.
    reason: of the last signal, a FailureReason.
    suspensions: in a row, without an accepted message between them.
    warnings, warned_at: signals in a row that may suspend the next time, and the time of the last one.
    tokens, tokens_at: messages that may leave now, as of a time.
    accepted, deferred: counts of the last SLOTS times SLOT_SECONDS, the latest first.
    slot: the number of the latest.
    """

    connections: int = INITIAL_CONNECTIONS
    grown_at: float = 0.0
    narrowed_at: float = 0.0
    began_at: float = 0.0
    low_rate: float = 0.0
    good_rate: float = 0.0
    slowed_at: float | None = None
    waited_at: float = 0.0
    suspended_until: float = 0.0
    reason: str = ""
    suspensions: int = 0
    warnings: int = 0
    warned_at: float = 0.0
    tokens: float = 0.0
    tokens_at: float = 0.0
    accepted: tuple[int, ...] = (0,) * SLOTS
    deferred: tuple[int, ...] = (0,) * SLOTS
    slot: int = 0

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Pace":
        known = {name: values[name] for name in cls.__dataclass_fields__ if name in values}
        return cls(**known | {name: tuple(known[name]) for name in ("accepted", "deferred") if name in known})

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def is_suspended(self, now: float) -> bool:
        return now < self.suspended_until

    def rate(self, now: float) -> float | None:
        """Return the learnt rate in messages a minute, None if nothing was learnt."""
        if self.slowed_at is None:
            return None
        distance = (now - self.slowed_at) / PLATEAU_SECONDS - 1
        height = self.good_rate - self.low_rate if distance < 0 else GROWTH * max(self.good_rate, LEAST_GROWING_RATE)
        return max(self.good_rate + distance**3 * height, LOWEST_RATE)

    def accepted_rate(self, now: float) -> float:
        """Return the messages a minute that were accepted in the window."""
        counted = self._at(now)
        seconds = min(now - self.began_at, (SLOTS - 1) * SLOT_SECONDS + now % SLOT_SECONDS)
        return sum(counted.accepted) * 60.0 / max(seconds, FEWEST_SECONDS)

    def record(self, now: float, *, accepted: int = 0, deferred: int = 0) -> "Pace":
        """Count ended attempts. deferred: without those of greylisting and of single recipients."""
        counted = self._at(now)
        pace = replace(
            counted,
            began_at=self.began_at or now,
            accepted=(counted.accepted[0] + accepted, *counted.accepted[1:]),
            deferred=(counted.deferred[0] + deferred, *counted.deferred[1:]),
        )
        if accepted:
            pace = replace(pace, suspensions=0)
        attempts = sum(pace.accepted) + sum(pace.deferred)
        if deferred and attempts >= ATTEMPTS_FOR_DOUBT and 2 * sum(pace.deferred) >= attempts:
            # Counted again from here, so that the next signal needs as many attempts.
            pace = replace(pace.slow(now, now), deferred=(0,) * SLOTS)
        return pace

    def grow(self, began_at: float, now: float, *, limits: PaceLimits) -> "Pace":
        """Add a connection after an accepted message, when all were in use. began_at: when its attempt began."""
        seconds = CONNECTION_SECONDS if self.narrowed_at else 0.0
        if self.connections >= limits.connections:
            return replace(self, connections=limits.connections)
        if began_at < self.grown_at + seconds:
            return self
        return replace(self, connections=self.connections + 1, grown_at=now)

    def slow(self, began_at: float, now: float) -> "Pace":
        """Answer a slow signal. began_at: when the refused attempt began; one of before the last signal is the same."""
        if self.slowed_at is not None and began_at <= self.slowed_at:
            return self
        accepted, learnt = self.accepted_rate(now), self.rate(now)
        is_repeated = self.slowed_at is not None and now - self.slowed_at < REPEAT_SECONDS
        if learnt is None:
            good, low = accepted, SLOWER * accepted
        elif is_repeated:
            good, low = max(min(self.good_rate, accepted), learnt), MUCH_SLOWER * learnt
        else:
            # CUBIC's fast convergence: a limit that has sunk is not approached again and again.
            good = min(learnt, max(accepted, SLOWER * learnt))
            low = SLOWER * min(accepted or learnt, learnt)
        return replace(
            self._with_fewer_connections(now),
            low_rate=max(low, LOWEST_RATE),
            good_rate=max(good, LOWEST_RATE),
            slowed_at=now,
            waited_at=now,
            tokens=0.0,
            tokens_at=now,
        )

    def narrow(self, began_at: float, now: float) -> "Pace":
        """Answer a signal about connections. The last one stays, and messages leave more slowly over it."""
        if began_at <= self.narrowed_at:
            return self
        return self._with_fewer_connections(now) if self.connections > 1 else self.slow(began_at, now)

    def suspend(self, began_at: float, now: float, *, seconds: float, after: int = 1) -> "Pace":
        """Stop for some time, twice as long at each repetition; afterwards the rate is found again from below.

        after: the number of such signals within WARNING_SECONDS that suspend; earlier ones slow.
        """
        if self.is_suspended(now) or began_at < self.suspended_until:
            return self
        if began_at <= self.warned_at:
            return self
        warnings = 1 + (self.warnings if now - self.warned_at < WARNING_SECONDS else 0)
        if warnings < after:
            return replace(self.slow(began_at, now), warnings=warnings, warned_at=now)
        wait = max(min(seconds * 2.0**self.suspensions, MAX_SUSPENSION_SECONDS), seconds)
        until = now + wait
        good = self.rate(now) or self.accepted_rate(now)
        return replace(
            self,
            connections=1,
            grown_at=until,
            narrowed_at=now,
            suspended_until=until,
            suspensions=self.suspensions + 1,
            low_rate=LOWEST_RATE,
            good_rate=max(good / 2, LOWEST_RATE),
            slowed_at=until,
            waited_at=until,
            tokens=1.0,
            tokens_at=until,
        )

    def available(self, now: float, *, rate: float) -> int:
        """Return how many messages may leave now. rate: messages a minute."""
        return 0 if self.is_suspended(now) else math.floor(self._tokens(now, rate))

    def spend(self, count: int, now: float, *, rate: float, is_waiting: bool) -> "Pace":
        """Take messages that left from those that may. is_waiting: whether more would have left."""
        waited_at = now if is_waiting else self.waited_at
        return replace(self, tokens=self._tokens(now, rate) - count, tokens_at=now, waited_at=waited_at)

    def forgotten(self, now: float) -> "Pace":
        """Return the pace without a rate that no longer limits what there is to send."""
        if self.slowed_at is None or now < self.slowed_at + PLATEAU_SECONDS or now < self.waited_at + UNUSED_SECONDS:
            return self
        return replace(self, slowed_at=None, low_rate=0.0, good_rate=0.0)

    def released(self, now: float) -> "Pace":
        """Return the pace without a suspension and a rate. Messages that are being sent do not suspend it again."""
        return replace(
            self,
            grown_at=min(self.grown_at, now),
            suspended_until=min(self.suspended_until, now),
            suspensions=0,
            warnings=0,
            slowed_at=None,
            low_rate=0.0,
            good_rate=0.0,
        )

    def returned(self, now: float, *, former_rate: float) -> "Pace":
        """Return the pace of an address that comes back after a listing, at half of its former rate.

        former_rate: messages a minute. The rate grows from there as after a slow signal, with each minute faster.
        """
        half = max(former_rate / 2, LOWEST_RATE)
        return replace(
            self,
            low_rate=half,
            good_rate=half,
            slowed_at=now - PLATEAU_SECONDS,
            waited_at=now,
            tokens=0.0,
            tokens_at=now,
        )

    def _tokens(self, now: float, rate: float) -> float:
        # A part of a message stays for the next release: else a rate of 45 a minute would be one of 30.
        burst = 1.0 + rate / 60 * BURST_SECONDS
        return min(self.tokens + rate / 60 * max(now - self.tokens_at, 0.0), burst)

    def _with_fewer_connections(self, now: float) -> "Pace":
        return replace(self, connections=max(self.connections - 1, 1), grown_at=now, narrowed_at=now)

    def _at(self, now: float) -> "Pace":
        """Return the pace with the window moved to a time."""
        slot = int(now // SLOT_SECONDS)
        passed = min(max(slot - self.slot, 0), SLOTS)
        if not passed:
            return self
        return replace(
            self,
            accepted=_shifted(self.accepted, passed),
            deferred=_shifted(self.deferred, passed),
            slot=slot,
        )


def _shifted(counts: Sequence[int], by: int) -> tuple[int, ...]:
    return ((0,) * by + tuple(counts))[:SLOTS]
