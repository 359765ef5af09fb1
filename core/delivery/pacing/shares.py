"""Pace shares: what this process may do at each pair of a source and a receiver (docs/decisions/0362).

The network loop keeps them, and exchanges reports for grants about once a second: at once if a message needs a
connection that was not granted. Between two exchanges nothing is asked.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import date
from typing import Protocol

from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import DeliveryOutcome, parked
from core.delivery.bounces.signals import Signal, SignalKind
from core.delivery.pacing.allowance import TAKEN_OVER, Allowance
from core.delivery.pacing.pace import limits_at
from core.delivery.pacing.pairs import LEASE_SECONDS, PaceSignal, PairGrant, PairKey, PairReport
from core.delivery.receivers import Receiver
from core.delivery.transports.circuit_breaker import Clock
from core.delivery.transports.destinations import DestinationBusy, SlotWaiters
from core.delivery.transports.interface import LeaseLost

EVERY_SECONDS = 1.0
# The least time between two exchanges, for those who ask at once.
LEAST_SECONDS = 0.005
# How long a message waits for a connection in this process. One that was released waits until others give theirs back.
WAIT_SECONDS = 0.25
RELEASED_WAIT_SECONDS = 3.0
UNUSED_SECONDS = 30.0
# Messages that arrive within this time after a signal were released before it, when more might leave: they wait again
# (docs/decisions/0372). A release is a second apart from the next one.
SETTLE_SECONDS = 1.0
# The cause of the wait of a message (WaitCause of emails.states).
RECEIVER_PACE = "receiver_pace"

Exchange = Callable[[Sequence[PairReport]], Awaitable[Sequence[PairGrant]]]


class DayUsedUp(DestinationBusy):
    """Raised when a source has sent a receiver its messages of the day; another one may take this one.

    is_taken_over: the message belongs to another address, which is listed or suspended.
    """

    def __init__(self, outcome: DeliveryOutcome, *, is_taken_over: bool) -> None:
        super().__init__(outcome)
        self.is_taken_over = is_taken_over


class SessionOwner(Protocol):
    """A destination with idle sessions of a pair."""

    @property
    def idle_sessions(self) -> int: ...

    def close_idle_session(self) -> None: ...


class PaceShare:
    """The share of this process of one pair. Belongs to one event loop.

    number: of the pair; 0 until the first exchange.
    in_use: connections of messages that are being sent.
    owners: the destinations that may have idle sessions: a receiver may have other hosts for each domain.
    used_at: when it was last asked for.
    since: the first day of a source that is new.
    """

    def __init__(
        self, key: PairKey, receiver: Receiver, *, since: date | None, ask: Callable[[], None], clock: Clock
    ) -> None:
        self.key = key
        self.receiver = receiver
        self.since = since
        self.number = 0
        self.in_use = 0
        self.used_at = 0.0
        self.owners: set[SessionOwner] = set()
        self._ask = ask
        self._clock = clock
        self._granted = 0
        self._granted_at = float("-inf")
        self._is_limited = False
        self._slowed_at = float("-inf")
        self._suspended_until = float("-inf")
        self._waiters = SlotWaiters()
        self._most_wanted = 0
        self._accepted = self._deferred = 0
        self._last_accepted_began: float | None = None
        # `began` is a time here, and seconds ago in reports.
        self._signals: list[PaceSignal] = []
        self._reason = FailureReason.RATE_LIMITED
        self._allowance = Allowance()

    @property
    def is_warming_up(self) -> bool:
        """Return whether the source is new at this receiver, as far as is known."""
        return self.since is not None and (self._allowance.is_limited or not self.number)

    @property
    def open(self) -> int:
        return self.in_use + sum(owner.idle_sessions for owner in self.owners)

    @property
    def reason(self) -> FailureReason:
        """Return the reason of the last signal."""
        return self._reason

    @property
    def is_suspended(self) -> bool:
        return self._clock() < self._suspended_until

    @property
    def must_report(self) -> bool:
        """Return whether the others must know something, or the lease must be renewed."""
        return bool(self._granted or self.open or self._waiters or self._signals or self._accepted or self._deferred)

    @contextmanager
    def using(self) -> Iterator[None]:
        """Count a connection as used, after `enter`."""
        self.in_use += 1
        try:
            yield
        finally:
            self.in_use -= 1
            self._waiters.wake()

    async def enter(self, owner: SessionOwner, *, released_for: int, is_taken_over: bool = False) -> None:
        """Wait shortly for a connection; the caller uses it at once. Raises DestinationBusy.

        released_for: the number of the pair for which the message was released; 0 if for none.
        is_taken_over: whether it belongs to another source, which is listed or suspended.
        """
        is_released = bool(released_for) and released_for == self.number
        self._refuse_stopped(is_released=is_released)
        self._refuse_used_up(is_taken_over=is_taken_over)
        if not self._has_room(owner, is_taken_over=is_taken_over):
            seconds = RELEASED_WAIT_SECONDS if is_released else WAIT_SECONDS
            await self._wait_for_room(owner, seconds=seconds, is_taken_over=is_taken_over)
            # The message that had the connection may have been the one that slowed the pair.
            self._refuse_stopped(is_released=is_released)
        self._most_wanted = max(self._most_wanted, self.in_use + 1)
        self._allowance.begin(is_taken_over=is_taken_over)

    def record_acceptance(self, began_at: float) -> None:
        self._accepted += 1
        self._last_accepted_began = max(began_at, self._last_accepted_began or began_at)
        if self._waiters:
            # Perhaps there is one more connection now.
            self._ask()

    def record_deferral(self) -> None:
        self._deferred += 1

    def record_signal(self, signal: Signal, outcome: DeliveryOutcome, *, began_at: float) -> None:
        """Answer a signal here at once, and tell the other processes."""
        reply = f"{outcome.reply.code or ''} {outcome.reply.text}".strip()
        self._signals.append(PaceSignal(signal, began_at, outcome.reason, reply))
        self._reason = FailureReason(outcome.reason)
        if signal.kind is not SignalKind.NARROW:
            # Until the next exchange, which knows the rate or the time of a suspension.
            self._is_limited = True
            self._slowed_at = self._clock()
        self._granted = max(self._granted - 1, 1)
        self._ask()

    def report(self) -> PairReport:
        """Return what happened since the last report, which is then forgotten."""
        now = self._clock()
        self.owners = {owner for owner in self.owners if owner.idle_sessions}
        needed = self.in_use + len(self._waiters)
        began = None if self._last_accepted_began is None else now - self._last_accepted_began
        report = PairReport(
            self.key,
            open=self.open,
            needed=needed,
            wanted=max(needed, self._most_wanted, self.open),
            limits=limits_at(self.receiver, since=self.since),
            accepted=self._accepted,
            deferred=self._deferred,
            began=began,
            signals=tuple(replace(one, began=now - one.began) for one in self._signals),
            known=min(now - self._granted_at, LEASE_SECONDS),
            in_use=self.in_use,
            # As many as in the last time between two reports, so that few ask for one more at once.
            further=len(self._waiters) + self._allowance.begun,
            taken_over=self._allowance.taken_over,
        )
        self._allowance.reset()
        self._most_wanted = self.in_use
        self._accepted = self._deferred = 0
        self._last_accepted_began = None
        self._signals = []
        return report

    def restore(self, report: PairReport) -> None:
        """Take a report back that did not reach the database."""
        now = self._clock()
        self._accepted += report.accepted
        self._deferred += report.deferred
        if report.began is not None:
            self._last_accepted_began = max(now - report.began, self._last_accepted_began or 0.0)
        self._signals = [*(replace(one, began=now - one.began) for one in report.signals), *self._signals]
        if now - self._granted_at > LEASE_SECONDS:
            # Another process may have these connections by now.
            self._granted = 0

    def accept(self, grant: PairGrant) -> None:
        now = self._clock()
        self.number = grant.number
        self._granted, self._granted_at = grant.connections, now
        was_limited = self._is_limited
        # Signals that came after the report are answered by the next one.
        self._is_limited = grant.is_limited or any(one.signal.kind is not SignalKind.NARROW for one in self._signals)
        if self._is_limited and not was_limited:
            self._slowed_at = now
        self._suspended_until = now + grant.suspended
        self._reason = FailureReason(grant.reason or FailureReason.RATE_LIMITED)
        self._allowance.accept(grant, now)
        self._close_idle(self.open - self._granted)
        is_refused = grant.is_used_up or grant.is_taken_over
        self._waiters.wake(len(self._waiters) if is_refused else self._granted - self.in_use)

    def close_idle(self) -> None:
        """Close the sessions that are not used."""
        self._close_idle(self.open)

    def wait(self, *, reason: FailureReason) -> DeliveryOutcome:
        """Return the outcome of a message that waits for this pair, which is listed or suspended."""
        text = "The address is listed or suspended, and no other one may take over more of its messages today."
        return self._busy(text, reason).outcome

    def _refuse_used_up(self, *, is_taken_over: bool) -> None:
        if text := self._allowance.refusal(self._clock(), is_taken_over=is_taken_over):
            raise DayUsedUp(self._busy(text).outcome, is_taken_over=text == TAKEN_OVER)

    def _refuse_stopped(self, *, is_released: bool) -> None:
        if self.is_suspended:
            raise self._busy("The receiver takes no email from this address for some time.", self._reason)
        is_settled = self._clock() >= self._slowed_at + SETTLE_SECONDS
        if self._is_limited and not (is_released and is_settled):
            raise self._busy("The receiver asked for less email.", self._reason)

    def _busy(self, text: str, reason: FailureReason = FailureReason.DESTINATION_FULL) -> DestinationBusy:
        """Return the error of a message that waits. reason: a route may send it by the next transport for it."""
        if not self.number:
            # The database did not answer.
            return DestinationBusy(parked(reason, text))
        return DestinationBusy(replace(parked(reason, text, waits_for=RECEIVER_PACE), pair=self.number))

    def _has_room(self, owner: SessionOwner, *, is_taken_over: bool) -> bool:
        """Return whether a message may leave over a connection now, and make room for a new one."""
        if self.in_use >= self._granted or not self._allowance.has_room(is_taken_over=is_taken_over):
            return False
        if not owner.idle_sessions:
            self._close_idle(self.open + 1 - self._granted)
        return True

    def _close_idle(self, count: int) -> None:
        for owner in self.owners:
            while count > 0 and owner.idle_sessions:
                owner.close_idle_session()
                count -= 1

    async def _wait_for_room(self, owner: SessionOwner, *, seconds: float, is_taken_over: bool) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        self._ask()
        while True:
            with self._allowance.waiting(is_taken_over=is_taken_over):
                await self._waiters.wait(end - loop.time())
            self._refuse_used_up(is_taken_over=is_taken_over)
            if self._has_room(owner, is_taken_over=is_taken_over):
                return
            if loop.time() >= end:
                raise self._busy("All connections allowed to the receiver are in use.")
            if not self._allowance.has_room(is_taken_over=is_taken_over):
                # Another message took what was granted.
                self._ask()


class PaceShares:
    """The shares of a process. exchange: gives reports to the other processes, and returns grants."""

    def __init__(self, exchange: Exchange, *, clock: Clock = time.monotonic) -> None:
        self._exchange = exchange
        self._clock = clock
        self._shares: dict[PairKey, PaceShare] = {}
        self._asked = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def get(self, key: PairKey, receiver: Receiver, *, since: date | None = None) -> PaceShare:
        """Return the share of a pair, which the caller enters at once; it is kept while it is used.

        since: the first day of a source that is new.
        """
        share = self._shares.get(key)
        if share is None:
            share = PaceShare(key, receiver, since=since, ask=self._ask, clock=self._clock)
            self._shares[key] = share
        share.since = since
        share.used_at = self._clock()
        self._start()
        return share

    async def close(self) -> None:
        """Give the connections back when the process ends, so that the next one need not wait for its lease."""
        for share in self._shares.values():
            share.close_idle()
        await self._exchange_all()
        if self._task:
            self._task.cancel()

    def _ask(self) -> None:
        # A message that another pair refused asks for this one after all others have ended.
        self._start()
        self._asked.set()

    def _start(self) -> None:
        loop = asyncio.get_running_loop()
        if self._task is None or self._task.done() or self._task.get_loop() is not loop:
            self._asked = asyncio.Event()
            self._task = loop.create_task(self._run())

    async def _run(self) -> None:
        """Exchange while any share is used."""
        while any(share.must_report for share in self._shares.values()) or self._asked.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._asked.wait(), EVERY_SECONDS)
            await asyncio.sleep(LEAST_SECONDS)
            self._asked.clear()
            await self._exchange_all()

    async def _exchange_all(self) -> None:
        shares = {key: share for key, share in self._shares.items() if share.must_report}
        reports = [share.report() for share in shares.values()]
        if not reports:
            return
        try:
            grants = await self._exchange(reports)
        except LeaseLost:
            for report in reports:
                shares[report.key].restore(report)
            await asyncio.sleep(EVERY_SECONDS)
            return
        for grant in grants:
            shares[grant.key].accept(grant)
        self._forget_unused()

    def _forget_unused(self) -> None:
        """Forget what was not used for some time; those who use it next ask again."""
        before = self._clock() - UNUSED_SECONDS
        for key in [key for key, share in self._shares.items() if share.used_at < before and not share.must_report]:
            del self._shares[key]
