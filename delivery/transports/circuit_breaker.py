"""A fuse: after failures in a row a destination is shut for a while, then tried with one message at a time."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
        self._is_probed = False

    @property
    def is_blown(self) -> bool:
        """Tell whether failures have opened it, a probe under way or not."""
        return self._failures >= self._fuse.failures

    @property
    def is_open(self) -> bool:
        """Tell whether nobody may pass now."""
        return self.is_blown and (self._is_probed or self._clock() < self._shut_until)

    @contextmanager
    def passage(self) -> Iterator[None]:
        """Pass: where it is blown this one is the probe, and the others wait until it is back with or without news."""
        is_probe = self.is_blown
        self._is_probed = self._is_probed or is_probe
        try:
            yield
        finally:
            if is_probe:
                self._is_probed = False

    def succeed(self) -> None:
        self._failures = 0
        self._shut_until = 0.0

    def fail(self) -> None:
        """Count a failure; those that were under way when it blew say nothing new."""
        if self.is_blown and self._clock() < self._shut_until:
            return
        self._failures += 1
        if self.is_blown:
            doublings = min(self._failures - self._fuse.failures, 20)
            seconds = min(self._fuse.first_seconds * 2**doublings, self._fuse.longest_seconds)
            self._shut_until = self._clock() + seconds
