"""Destinations: the connection pool, connection limit and circuit breaker of each mail host (docs/decisions/0022).

A destination that is slow, silent or down occupies at most its own connections. A new one starts with a small
window (two for direct delivery), which grows by one with each reply, up to the limit.
"""

import asyncio
import itertools
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from delivery.bounces.reasons import FailureReason
from delivery.bounces.replies import DeliveryOutcome, parked
from delivery.transports.circuit_breaker import BreakerPolicy, CircuitBreaker
from delivery.transports.smtp.session import Session

# A destination that replied within this time frees a slot in milliseconds; parking instead costs a row update.
ACTIVE_SECONDS = 1.0
WAIT_SECONDS = 0.25
MAX_DESTINATIONS = 10_000
# Destinations examined for eviction when there are too many.
EVICTION_CANDIDATES = 8


@dataclass(frozen=True)
class DestinationLimits:
    """Connection limits of a destination.

    max_connections: open at once, None for no limit. initial_connections: the window of a new destination.
    max_messages: per connection. idle_seconds: how long an idle connection is kept.
    """

    max_connections: int | None = None
    initial_connections: int | None = None
    max_messages: int = 100
    idle_seconds: float = 30.0
    breaker_policy: BreakerPolicy = field(default_factory=BreakerPolicy)


class DestinationBusy(Exception):
    """Raised before any attempt when the destination is full or its circuit breaker is open; see `outcome`."""

    def __init__(self, reason: FailureReason, text: str) -> None:
        super().__init__(text)
        self.outcome: DeliveryOutcome = parked(reason, text)


class Destination:
    """One destination in this process. Belongs to one event loop."""

    def __init__(self, limits: DestinationLimits) -> None:
        self.breaker = CircuitBreaker(limits.breaker_policy)
        self._limits = limits
        self._idle: deque[Session] = deque()
        self._in_use = 0
        self._window = limits.initial_connections or limits.max_connections
        self._last_reply_at = float("-inf")
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._idle_timer: asyncio.TimerHandle | None = None

    @property
    def is_unused(self) -> bool:
        return not (self._idle or self._in_use or self._waiters or self.breaker.is_tripped)

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Occupy one connection slot. Raises DestinationBusy."""
        await self._wait_for_slot()
        self._in_use += 1
        try:
            with self.breaker.call():
                yield
        finally:
            self._in_use -= 1
            self._wake_next_waiter()

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

    def record_reply(self) -> None:
        """Record that the host answered a message: close the breaker and widen the window by one."""
        self.breaker.record_success()
        self._last_reply_at = asyncio.get_running_loop().time()
        if self._window is not None and self._window != self._limits.max_connections:
            self._window += 1

    def record_failure(self) -> None:
        """Record a connection failure: the window starts again from its initial size."""
        self.breaker.record_failure()
        self._window = self._limits.initial_connections or self._limits.max_connections

    def close(self) -> None:
        """Close the idle sessions."""
        while self._idle:
            self._idle.pop().close()
        if self._idle_timer:
            self._idle_timer.cancel()
            self._idle_timer = None

    async def _wait_for_slot(self) -> None:
        if self.breaker.is_open:
            raise DestinationBusy(FailureReason.DESTINATION_SHUT, "The destination is paused after repeated failures.")
        if self._is_full and not (self._is_active and await self._wait_for_release()):
            raise DestinationBusy(
                FailureReason.DESTINATION_FULL, "All connections allowed to the destination are in use."
            )

    @property
    def _is_full(self) -> bool:
        return self._window is not None and self._in_use >= self._window

    @property
    def _is_active(self) -> bool:
        return asyncio.get_running_loop().time() - self._last_reply_at < ACTIVE_SECONDS

    async def _wait_for_release(self) -> bool:
        """Wait up to WAIT_SECONDS for a slot; return whether one is free."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await asyncio.wait([waiter], timeout=WAIT_SECONDS)
            return waiter.done() and not self._is_full
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)

    def _wake_next_waiter(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

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

    def __init__(self, limits: DestinationLimits, *, max_size: int = MAX_DESTINATIONS) -> None:
        self._limits = limits
        self._max_size = max_size
        self._by_key: OrderedDict[object, Destination] = OrderedDict()

    def get_or_create(self, key: object) -> Destination:
        """Return the destination of a key; keys used most recently are evicted last."""
        destination = self._by_key.get(key)
        if not destination:
            self._evict_unused()
            destination = self._by_key[key] = Destination(self._limits)
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
