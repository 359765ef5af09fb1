"""Destinations: the connection pool, connection limit and circuit breaker of each mail host (docs/decisions/0022).

A destination that is slow, silent or down occupies at most its own connections. A new one starts with a small
window (two for direct delivery), which grows by one with each accepted message, up to the limit. A reply that asks for
less halves it, and several pause the destination (docs/decisions/0278).
"""

import asyncio
import itertools
import random
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta

from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import DeliveryOutcome, parked
from core.delivery.bounces.signals import Signal, SignalKind
from core.delivery.transports.circuit_breaker import NEVER, BreakerPolicy, CircuitBreaker, Clock
from core.delivery.transports.smtp.session import Session

# A destination that replied within this time frees a slot in milliseconds; parking instead costs a row update.
ACTIVE_SECONDS = 1.0
WAIT_SECONDS = 0.25
MAX_DESTINATIONS = 10_000
# Destinations examined for eviction when there are too many.
EVICTION_CANDIDATES = 8
# When a signal pauses a destination, and for how long. A rate is found again within a minute and a half of its end;
# distrust and listings last for hours, and each probe costs an attempt of an email.
PAUSES = {
    SignalKind.SLOW: BreakerPolicy(max_open_seconds=60.0),
    SignalKind.NARROW: BreakerPolicy(max_open_seconds=60.0),
    SignalKind.SUSPEND: BreakerPolicy(failure_threshold=1),
    SignalKind.LISTED: BreakerPolicy(failure_threshold=1, initial_open_seconds=1800.0),
}
# Messages for a paused destination come back within this time after the pause: the first one is the probe.
SPREAD_SECONDS = 20.0


@dataclass(frozen=True)
class DestinationLimits:
    """Connection limits of a destination.

    max_connections: open at once, None for no limit.
    initial_connections: the window of a new destination.
    max_messages: messages per connection.
    idle_seconds: how long an idle connection is kept.
    """

    max_connections: int | None = None
    initial_connections: int | None = None
    max_messages: int = 100
    idle_seconds: float = 30.0
    breaker_policy: BreakerPolicy = field(default_factory=BreakerPolicy)


class DestinationBusy(Exception):
    """Raised before any attempt when the destination is full, paused, or its circuit breaker is open; see `outcome`."""

    def __init__(self, outcome: DeliveryOutcome) -> None:
        super().__init__(outcome.reply.text)
        self.outcome = outcome


class SlotWaiters:
    """Messages that wait for a connection, in their order."""

    def __init__(self) -> None:
        self._waiters: deque[asyncio.Future[None]] = deque()

    def __len__(self) -> int:
        return len(self._waiters)

    async def wait(self, seconds: float) -> None:
        """Wait to be woken, up to a time."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await asyncio.wait([waiter], timeout=seconds)
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)

    def wake(self, count: int = 1) -> None:
        """Wake the first ones that still wait."""
        while self._waiters and count > 0:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                count -= 1


class Destination:
    """One destination in this process. Belongs to one event loop.

    breaker: opened by failed connections.
    pause: opened by slow signals; only an accepted message closes it.
    receiver: the key of the receiver; empty for a relay or a provider.
    clock: of the times that it is given.
    """

    receiver = ""

    def __init__(self, limits: DestinationLimits, *, clock: Clock = time.monotonic) -> None:
        self.clock = clock
        self.breaker = CircuitBreaker(limits.breaker_policy, clock=clock)
        self.pause = CircuitBreaker(PAUSES[SignalKind.SLOW], clock=clock)
        self._last_signal: DeliveryOutcome | None = None
        self._limits = limits
        self._idle: deque[Session] = deque()
        self._in_use = 0
        self._window = limits.initial_connections or limits.max_connections
        self._last_reply_at = float("-inf")
        self._waiters = SlotWaiters()
        self._idle_timer: asyncio.TimerHandle | None = None

    @property
    def is_unused(self) -> bool:
        return not (self._idle or self._in_use or self._waiters or self.breaker.is_tripped or self.pause.is_tripped)

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Occupy one connection slot. Raises DestinationBusy."""
        await self._wait_for_slot()
        self._in_use += 1
        try:
            with self.breaker.call(), self.pause.call():
                yield
        finally:
            self._in_use -= 1
            self._waiters.wake()

    def take_session(self) -> Session | None:
        """Return the usable idle session that was used last, or None."""
        while self._idle:
            session = self._idle.pop()
            if session.is_usable:
                return session
            session.close()
        return None

    def return_session(self, session: Session) -> None:
        """Keep a session for the next message; close it if it is broken or has reached its message limit."""
        if not session.is_usable or session.messages >= self._limits.max_messages:
            session.close()
            return
        loop = asyncio.get_running_loop()
        session.idle_since = loop.time()
        self._idle.append(session)
        if not self._idle_timer:
            self._idle_timer = loop.call_later(self._limits.idle_seconds, self._close_idle)

    @property
    def idle_sessions(self) -> int:
        return len(self._idle)

    def close_idle_session(self) -> None:
        """Close the session that has been idle longest."""
        self._idle.popleft().close()

    def record_acceptance(self, *, began_at: float = 0.0) -> None:
        """Record an accepted message: end the pause, close the breaker and widen the window by one.

        began_at: when the attempt began.
        """
        self._record_reply()
        self.pause.record_success()
        if self._window is not None and self._window != self._limits.max_connections:
            self._window += 1

    def record_refusal(self, outcome: DeliveryOutcome) -> None:
        """Record a refusal that says nothing about the pace, such as an unknown user: the host works."""
        self._record_reply()

    def record_signal(self, signal: Signal, outcome: DeliveryOutcome, *, began_at: float = 0.0) -> None:
        """Record a refusal that asks for less: halve the window, and pause the destination as PAUSES says."""
        self._record_reply()
        self.narrow(outcome, began_at=began_at)
        if self._limits.breaker_policy is NEVER and outcome.reason == FailureReason.HOST_TROUBLE:
            # The breaker of the named transport counts it.
            return
        policy = PAUSES[signal.kind]
        longest = self._limits.breaker_policy.max_open_seconds
        self.pause.record_failure(replace(policy, max_open_seconds=min(policy.max_open_seconds, longest)))
        self._last_signal = outcome

    def narrow(self, outcome: DeliveryOutcome, *, began_at: float) -> None:
        """Halve the window after a host closed its connection; one connection stays."""
        open_now = self._in_use if self._window is None else self._window
        self._window = max(open_now // 2, 1)

    def record_failure(self) -> None:
        """Record a connection failure: the window starts again, from its initial size at most."""
        self.breaker.record_failure()
        initial = self._limits.initial_connections or self._limits.max_connections
        self._window = min(filter(None, (initial, self._window)), default=None)

    def close(self) -> None:
        """Close the idle sessions."""
        while self._idle:
            self._idle.pop().close()
        if self._idle_timer:
            self._idle_timer.cancel()
            self._idle_timer = None

    def _record_reply(self) -> None:
        self.breaker.record_success()
        self._last_reply_at = asyncio.get_running_loop().time()

    async def _wait_for_slot(self) -> None:
        if self._is_full and self._is_active and not (self.pause.is_open or self.breaker.is_open):
            await self._wait_for_release()
        # After the wait: the message that had the slot may have been the one that paused the destination.
        if self.pause.is_open:
            raise DestinationBusy(self._paused())
        self._refuse_broken()
        if self._is_full:
            reason, text = FailureReason.DESTINATION_FULL, "All connections allowed to the destination are in use."
            raise DestinationBusy(parked(reason, text))

    def _refuse_broken(self) -> None:
        if self.breaker.is_open:
            reason, text = FailureReason.DESTINATION_SHUT, "The destination is paused after repeated failures."
            raise DestinationBusy(parked(reason, text))

    def _paused(self) -> DeliveryOutcome:
        """Return the outcome of a message that waits for the end of the pause, with the reason of the refusals."""
        assert self._last_signal
        seconds = self.pause.seconds_left + random.uniform(1, SPREAD_SECONDS)  # noqa: S311 - spreads load, not a secret
        reply = self._last_signal.reply
        text = f"The receiver asked for less email: {reply.code or ''} {reply.text}"
        return parked(FailureReason(self._last_signal.reason), text, retry_after=timedelta(seconds=seconds))

    @property
    def _is_full(self) -> bool:
        return self._window is not None and self._in_use >= self._window

    @property
    def _is_active(self) -> bool:
        return asyncio.get_running_loop().time() - self._last_reply_at < ACTIVE_SECONDS

    async def _wait_for_release(self) -> None:
        """Wait up to WAIT_SECONDS for a slot."""
        await self._waiters.wait(WAIT_SECONDS)

    def _close_idle(self) -> None:
        """Close sessions idle for too long; the queue is ordered by idle time, longest first."""
        loop = asyncio.get_running_loop()
        self._idle_timer = None
        while self._idle and loop.time() - self._idle[0].idle_since >= self._limits.idle_seconds:
            self._idle.popleft().close()
        if self._idle:
            at = self._idle[0].idle_since + self._limits.idle_seconds
            self._idle_timer = loop.call_at(at, self._close_idle)


class Destinations:
    """Destinations by key; unused ones are evicted when there are more than max_size."""

    def __init__(
        self, limits: DestinationLimits, *, max_size: int = MAX_DESTINATIONS, clock: Clock = time.monotonic
    ) -> None:
        self._limits = limits
        self._clock = clock
        self._max_size = max_size
        self._by_key: OrderedDict[object, Destination] = OrderedDict()

    def get_or_create(self, key: object, make: "Callable[[], Destination] | None" = None) -> Destination:
        """Return the destination of a key; keys used most recently are evicted last. make: for one of another kind."""
        destination = self._by_key.get(key)
        if not destination:
            self._evict_unused()
            destination = make() if make else Destination(self._limits, clock=self._clock)
            self._by_key[key] = destination
        self._by_key.move_to_end(key)
        return destination

    def close(self) -> None:
        """Close the idle sessions of every destination."""
        for destination in self._by_key.values():
            destination.close()

    def _evict_unused(self) -> None:
        """Evict the least recently used destinations that are unused; constant time for any number of them."""
        if len(self._by_key) < self._max_size:
            return
        for key in list(itertools.islice(self._by_key, EVICTION_CANDIDATES)):
            if self._by_key[key].is_unused:
                del self._by_key[key]
