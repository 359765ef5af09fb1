"""What a process knows of one destination: its kept connections, how many are out, whether it is shut.

A destination that is slow, silent or down takes at most its own connections, and as a newcomer only two:
the window grows by one with every message that it takes, up to the limit.
"""

import asyncio
import itertools
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from delivery.bounces.reasons import Reason
from delivery.bounces.replies import DeliveryOutcome, parked
from delivery.transports.circuit_breaker import Circuit, Fuse
from delivery.transports.smtp.session import Session

# Full, but moving: the next place is a matter of milliseconds, and parking costs a row's update.
MOVING_SECONDS = 1.0
WAIT_SECONDS = 0.25
MOST_LANES = 10_000
LOOKS = 8


@dataclass(frozen=True)
class Limits:
    """connections: at once, None for any number. first: what a newcomer may have. messages: on one connection."""

    connections: int | None = None
    first: int | None = None
    messages: int = 100
    keep_seconds: float = 30.0
    fuse: Fuse = field(default_factory=Fuse)


class DestinationBusy(Exception):
    """Nothing was tried: the destination is full or shut. outcome says which."""

    def __init__(self, reason: Reason, text: str) -> None:
        super().__init__(text)
        self.outcome: DeliveryOutcome = parked(reason, text)


class Destination:
    """One destination of this process. Belongs to one event loop."""

    def __init__(self, limits: Limits) -> None:
        self.circuit = Circuit(limits.fuse)
        self._limits = limits
        self._idle: deque[Session] = deque()
        self._out = 0
        self._window = limits.first or limits.connections
        self._moved_at = float("-inf")
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._sweeper: asyncio.TimerHandle | None = None

    @property
    def is_unused(self) -> bool:
        return not (self._idle or self._out or self._waiting or self.circuit.is_blown)

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Hold one of the destination's places. Raises DestinationBusy."""
        await self._wait_for_place()
        self._out += 1
        try:
            with self.circuit.passage():
                yield
        finally:
            self._out -= 1
            self._let_next_in()

    def take(self) -> Session | None:
        """Return a kept connection that still stands, the one used last."""
        while self._idle:
            session = self._idle.pop()
            if session.is_usable:
                return session
            session.close()
        return None

    def give_back(self, session: Session) -> None:
        """Keep a connection for the next message, or close it if it is worn out or broken."""
        if not session.is_usable or session.messages >= self._limits.messages:
            session.close()
            return
        loop = asyncio.get_running_loop()
        session.kept_since = loop.time()
        self._idle.append(session)
        if not self._sweeper:
            self._sweeper = loop.call_later(self._limits.keep_seconds, self._sweep)

    def moved(self) -> None:
        """Note that a message got its answer: the destination works, and may have one connection more."""
        self.circuit.succeed()
        self._moved_at = asyncio.get_running_loop().time()
        if self._window is not None and self._window != self._limits.connections:
            self._window += 1

    def failed(self) -> None:
        """Note that no connection came about: the destination starts again as a newcomer."""
        self.circuit.fail()
        self._window = self._limits.first or self._limits.connections

    def close(self) -> None:
        """Close what is kept."""
        while self._idle:
            self._idle.pop().close()
        if self._sweeper:
            self._sweeper.cancel()
            self._sweeper = None

    async def _wait_for_place(self) -> None:
        if self.circuit.is_open:
            raise DestinationBusy(Reason.DESTINATION_SHUT, "The destination is shut for a while after failures.")
        if self._is_full and not (self._is_moving and await self._let_in()):
            raise DestinationBusy(Reason.DESTINATION_FULL, "The destination has all the connections it may have.")

    @property
    def _is_full(self) -> bool:
        return self._window is not None and self._out >= self._window

    @property
    def _is_moving(self) -> bool:
        return asyncio.get_running_loop().time() - self._moved_at < MOVING_SECONDS

    async def _let_in(self) -> bool:
        """Wait a moment for a place; return whether there is one."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await asyncio.wait([turn], timeout=WAIT_SECONDS)
            return turn.done() and not self._is_full
        finally:
            if turn in self._waiting:
                self._waiting.remove(turn)

    def _let_next_in(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    def _sweep(self) -> None:
        """Close what has been kept long enough; the oldest stand in front."""
        loop = asyncio.get_running_loop()
        self._sweeper = None
        while self._idle and loop.time() - self._idle[0].kept_since >= self._limits.keep_seconds:
            self._idle.popleft().close()
        if self._idle:
            at = self._idle[0].kept_since + self._limits.keep_seconds
            self._sweeper = loop.call_at(at, self._sweep)


class Destinations:
    """The lanes by destination; those that hold nothing are forgotten when there are too many."""

    def __init__(self, limits: Limits, *, most: int = MOST_LANES) -> None:
        self._limits = limits
        self._most = most
        self._by_key: OrderedDict[object, Destination] = OrderedDict()

    def lane(self, key: object) -> Destination:
        lane = self._by_key.get(key)
        if not lane:
            self._forget_unused()
            lane = self._by_key[key] = Destination(self._limits)
        self._by_key.move_to_end(key)
        return lane

    def close(self) -> None:
        for lane in self._by_key.values():
            lane.close()

    def _forget_unused(self) -> None:
        """Drop what nothing hangs on, from those used longest ago: a few looks, whatever their number."""
        if len(self._by_key) < self._most:
            return
        for key in list(itertools.islice(self._by_key, LOOKS)):
            if self._by_key[key].is_unused:
                del self._by_key[key]
