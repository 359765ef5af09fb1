"""A fuse: after failures in a row a destination is shut for a while, then tried with one message at a time."""

import time
from collections.abc import Callable
from dataclasses import dataclass

Clock = Callable[[], float]


@dataclass(frozen=True)
class Fuse:
    """failures: in a row, until it blows; the seconds that it is shut double from first to longest."""

    failures: int = 3
    first_seconds: float = 30.0
    longest_seconds: float = 1800.0


class Circuit:
    """Closed: all pass. Open: nobody. When its time is over, one probe passes and decides."""

    def __init__(self, fuse: Fuse, *, clock: Clock = time.monotonic) -> None:
        self._fuse = fuse
        self._clock = clock
        self._failures = 0
        self._shut_until = 0.0
        self._probing_until = 0.0

    @property
    def is_blown(self) -> bool:
        """Tell whether failures have opened it, a probe under way or not."""
        return self._failures >= self._fuse.failures

    @property
    def is_open(self) -> bool:
        """Tell whether nobody may pass now."""
        now = self._clock()
        return self.is_blown and (now < self._shut_until or now < self._probing_until)

    def enter(self) -> None:
        """Say that one passes: where it is blown, that one is the probe, until it reports or is forgotten."""
        if self.is_blown:
            self._probing_until = self._clock() + self._fuse.longest_seconds

    def leave(self) -> None:
        """Say that one who passed is back, with no news of the destination."""
        self._probing_until = 0.0

    def succeed(self) -> None:
        self._failures = 0
        self._shut_until = self._probing_until = 0.0

    def fail(self) -> None:
        """Count a failure; those that were under way when it blew say nothing new."""
        if self.is_blown and self._clock() < self._shut_until:
            return
        self._failures += 1
        self._probing_until = 0.0
        if self.is_blown:
            doublings = min(self._failures - self._fuse.failures, 20)
            seconds = min(self._fuse.first_seconds * 2**doublings, self._fuse.longest_seconds)
            self._shut_until = self._clock() + seconds
