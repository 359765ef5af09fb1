"""Pairs of a source and a receiver, shared by the processes of an installation (docs/decisions/0362).

Each process reports what it did, and is granted connections for the time of a lease. A process that dies frees them
when its lease ends. All functions are pure, as those of `core.delivery.pacing.pace`.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from core.delivery.bounces.signals import Signal, SignalKind
from core.delivery.pacing.pace import FORGET_SECONDS, Pace, PaceLimits
from core.delivery.pacing.volumes import Volume, day_of

LEASE_SECONDS = 10.0
# Messages that are released by one statement.
MOST_AT_ONCE = 1000


@dataclass(frozen=True, order=True)
class PairKey:
    """A source and a receiver.

    source: the addresses that are connected from; empty if the system chooses.
    receiver: its key.
    """

    source: str
    receiver: str


@dataclass(frozen=True)
class PaceSignal:
    """A reply that asked for less.

    began: seconds ago, when the refused attempt began.
    reason: the FailureReason of the refusal.
    reply: safe to show.
    """

    signal: Signal
    began: float
    reason: str = ""
    reply: str = ""


@dataclass(frozen=True)
class PairReport:
    """What a process did at a pair since its last report.

    open: its connections now, with idle ones.
    needed: those that are in use or waited for now.
    wanted: the most that it could have used, and its idle ones.
    accepted, deferred: attempts, see Pace.record.
    began: seconds ago, when the last of the accepted attempts began; None without one.
    limits: of the receiver.
    known: seconds ago, when the process last got a grant, and so knew of the signals until then.
    in_use: connections of messages that are being sent.
    further: attempts that it would begin until its next report, as far as it knows.
    taken_over: those of them that belong to another address, which is listed or suspended.
    """

    key: PairKey
    open: int
    needed: int
    wanted: int
    limits: PaceLimits
    accepted: int = 0
    deferred: int = 0
    began: float | None = None
    signals: tuple[PaceSignal, ...] = ()
    known: float = 0.0
    in_use: int = 0
    further: int = 0
    taken_over: int = 0


@dataclass(frozen=True)
class PairGrant:
    """What a process may do at a pair.

    number: of the pair.
    connections: that it may have open.
    is_limited: only messages that were released for the pair may leave.
    suspended: seconds in which nothing may begin.
    reason: the FailureReason of the last signal.
    messages: attempts that it may begin, None for any number.
    taken_over: those of them for another address.
    is_used_up, is_taken_over: whether these are none, although it would begin one.
    """

    key: PairKey
    number: int
    connections: int
    is_limited: bool
    suspended: float
    reason: str = ""
    messages: int | None = None
    taken_over: int = 0
    is_used_up: bool = False
    is_taken_over: bool = False


@dataclass(frozen=True)
class ConnectionLease:
    """The connections of a process, those that it needs, and the end of the lease.

    messages, taken_over: attempts that it makes or may begin; of a pair with a number for the day.
    """

    connections: int
    needed: int
    until: float
    messages: int = 0
    taken_over: int = 0


@dataclass(frozen=True)
class Pair:
    """The state of a pair.

    leases: by process.
    pinned: messages a minute that an operator has set.
    is_stopped: by an operator.
    volume: the messages by day.
    former_rate: messages a minute of the time when the address was listed; None while it is in use.
    """

    pace: Pace = field(default_factory=Pace)
    leases: Mapping[str, ConnectionLease] = field(default_factory=dict)
    updated_at: float = 0.0
    pinned: float | None = None
    is_stopped: bool = False
    volume: Volume = field(default_factory=Volume)
    former_rate: float | None = None

    @classmethod
    def from_json(
        cls, pace: dict[str, Any], leases: dict[str, list[Any]], reserved: Mapping[str, list[int]], **columns: Any
    ) -> "Pair":
        rows = {name: ConnectionLease(*row, *reserved.get(name, ())) for name, row in leases.items()}
        return cls(Pace.from_json(pace), rows, **columns)

    @property
    def leases_json(self) -> dict[str, list[Any]]:
        return {name: [lease.connections, lease.needed, lease.until] for name, lease in self.leases.items()}

    @property
    def reserved_json(self) -> dict[str, list[int]]:
        """Return the messages of the leases, apart from what the version before reads."""
        rows = {name: [lease.messages, lease.taken_over] for name, lease in self.leases.items()}
        return {name: row for name, row in rows.items() if any(row)}

    def is_limited(self, now: float, limits: PaceLimits) -> bool:
        """Return whether messages leave by a rate."""
        return self.rate(now, limits) is not None

    def rate(self, now: float, limits: PaceLimits) -> float | None:
        """Return the messages a minute in force, None for any number."""
        return self.pinned or min(filter(None, (self.pace.rate(now), limits.per_minute)), default=None)

    def is_closed(self, now: float) -> bool:
        """Return whether nothing leaves."""
        return self.is_stopped or self.former_rate is not None or self.pace.is_suspended(now)

    def leaving_rate(self, now: float, limits: PaceLimits) -> float | None:
        """Return the messages a minute that leave now: 0 if nothing does, None for any number."""
        return 0.0 if self.is_closed(now) else self.rate(now, limits)

    def available(self, now: float, limits: PaceLimits) -> int:
        """Return how many waiting messages may leave now.

        Without a rate: as many as the connections may take in a second, if messages were accepted as quickly as
        before, since some of the processes that get them have no connection.
        """
        if self.is_closed(now):
            return 0
        count = self._available(now, limits)
        left = self.volume.at(day_of(now), limits).left(limits)
        return count if left is None else min(count, max(left - sum(one.messages for one in self.leases.values()), 0))

    def available_to_others(self, now: float, limits: PaceLimits) -> int:
        """Return how many messages may leave now that wait for another address, which is listed or suspended."""
        left = self.volume.at(day_of(now), limits).left_to_take_over(limits)
        return min(self.available(now, limits), max(left - sum(one.taken_over for one in self.leases.values()), 0))

    def _available(self, now: float, limits: PaceLimits) -> int:
        if rate := self.rate(now, limits):
            return self.pace.available(now, rate=rate)
        accepted = self.pace.accepted_rate(now) / 60
        return min(2 * self.pace.connections + round(accepted * (1 + len(self.leases))), MOST_AT_ONCE)

    def release(self, count: int, now: float, limits: PaceLimits, *, is_waiting: bool) -> "Pair":
        """Return the pair after waiting messages were released. is_waiting: whether others still wait."""
        rate = self.rate(now, limits)
        if rate is None:
            return self
        return replace(self, pace=self.pace.spend(count, now, rate=rate, is_waiting=is_waiting))

    def at(self, now: float) -> "Pair":
        """Return the pair without ended leases, a rate that limits nothing, and a pace that was not used for a day."""
        leases = {name: lease for name, lease in self.leases.items() if lease.until > now}
        is_old = now - self.updated_at > FORGET_SECONDS and not self.pace.is_suspended(now)
        return replace(self, pace=Pace() if is_old else self.pace.forgotten(now), leases=leases)

    def exchange(self, report: PairReport, *, process: str, number: int, now: float) -> "tuple[Pair, PairGrant]":
        """Return the pair after a report, and what the process may do until its next one."""
        present = self.at(now)
        others = {name: lease for name, lease in present.leases.items() if name != process}
        taken = sum(lease.connections for lease in others.values())
        pace = _after(present.pace, report, now, is_full=taken + report.open >= present.pace.connections)
        volume = present.volume.at(day_of(now), report.limits)
        volume = replace(volume, sent=volume.sent + report.accepted)
        messages = _messages_left(volume.left(report.limits), (one.messages for one in others.values()), report)
        left = _messages_left(
            volume.left_to_take_over(report.limits), (one.taken_over for one in others.values()), report
        )
        taken_over = min(report.taken_over, left or 0)
        granted = min(report.wanted, max(pace.connections - taken, 0))
        if messages is not None:
            granted = min(granted, report.in_use + messages)
        if any(lease.needed > lease.connections for lease in others.values()):
            users = 1 + sum(bool(lease.needed) for lease in others.values())
            granted = min(granted, report.needed, math.ceil(pace.connections / users))
        # Idle connections above the grant are closed when the process reads it.
        held = max(granted, min(report.open, report.needed))
        leases = others
        if held or report.needed:
            reserved = 0 if messages is None else report.in_use + min(report.further, messages)
            for_others = report.in_use + taken_over if report.taken_over else 0
            until = now + LEASE_SECONDS
            leases = {**others, process: ConnectionLease(held, report.needed, until, reserved, for_others)}
        pair = replace(present, pace=pace, leases=leases, updated_at=now, volume=volume)
        is_limited = pair.is_limited(now, report.limits)
        # For the time of a lease at most, since the staff may end it.
        suspended = LEASE_SECONDS if self.is_stopped else min(max(pace.suspended_until - now, 0.0), LEASE_SECONDS)
        return pair, PairGrant(
            report.key,
            number,
            granted,
            is_limited,
            suspended,
            pace.reason,
            messages=None if messages is None else min(report.further, messages),
            taken_over=taken_over,
            is_used_up=messages == 0 and report.further > 0,
            is_taken_over=not taken_over and report.taken_over > 0,
        )


def _messages_left(left: int | None, reserved: Iterable[int], report: PairReport) -> int | None:
    """Return how many attempts a process may begin, None for any number, if the others make all of theirs."""
    return None if left is None else max(left - sum(reserved) - report.in_use, 0)


def _after(pace: Pace, report: PairReport, now: float, *, is_full: bool) -> Pace:
    if report.accepted or report.deferred:
        pace = pace.record(now, accepted=report.accepted, deferred=report.deferred)
    if report.began is not None and is_full:
        pace = pace.grow(now - report.began, now, limits=report.limits)
    for one in report.signals:
        # A message that began without the knowledge of a signal was in flight at its time (docs/decisions/0372).
        began_at = now - max(one.began, report.known)
        match one.signal.kind:
            case SignalKind.SLOW:
                pace = pace.slow(began_at, now)
            case SignalKind.NARROW:
                pace = pace.narrow(began_at, now)
            case SignalKind.SUSPEND | SignalKind.LISTED:
                pace = pace.suspend(began_at, now, seconds=one.signal.seconds, after=one.signal.after)
        pace = replace(pace, reason=one.reason)
    return pace
