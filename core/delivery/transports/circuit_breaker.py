"""Circuit breaker: stops attempts after failures in a row, then lets one attempt at a time test the destination."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

Clock = Callable[[], float]


@dataclass(frozen=True)
class BreakerPolicy:
    """When a breaker opens, and for how long.

    failure_threshold: failures in a row that trip it. The open time doubles with each further failure.
    """

    failure_threshold: int = 3
    initial_open_seconds: float = 30.0
    max_open_seconds: float = 1800.0


# The policy of a part of a named transport, whose own breaker decides.
NEVER = BreakerPolicy(failure_threshold=1_000_000_000)


class CircuitBreaker:
    """Closed: every call passes. Open: none passes. After the open time, one probe at a time passes and decides."""

    def __init__(self, policy: BreakerPolicy, *, clock: Clock = time.monotonic) -> None:
        self._policy = policy
        self._clock = clock
        self._failures = 0
        # How often it opened since the last success.
        self._openings = 0
        self._open_until = 0.0
        self._is_probing = False

    @property
    def is_tripped(self) -> bool:
        """Return whether failures have opened the breaker, even if a probe may pass now."""
        return self._openings > 0

    @property
    def is_open(self) -> bool:
        """Return whether calls are rejected now."""
        return self.is_tripped and (self._is_probing or self._clock() < self._open_until)

    @property
    def seconds_left(self) -> float:
        """Return the seconds until a probe may pass."""
        return max(self._open_until - self._clock(), 0.0)

    @contextmanager
    def call(self) -> Iterator[None]:
        """Make one call. On a tripped breaker the call is the probe: others are rejected until it ends."""
        is_probe = self.is_tripped
        self._is_probing = self._is_probing or is_probe
        try:
            yield
        finally:
            if is_probe:
                self._is_probing = False

    def record_success(self) -> None:
        """Close the breaker."""
        self._failures = self._openings = 0
        self._open_until = 0.0

    def postpone_probe(self) -> None:
        """Stay open for the initial time, as after the first failure."""
        self._openings = 1
        self._open_until = self._clock() + self._policy.initial_open_seconds

    def record_failure(self, policy: BreakerPolicy | None = None) -> None:
        """Count a failure. Calls that were under way when the breaker opened do not count.

        policy: the policy for this kind of failure, in place of the breaker's.
        """
        if self.is_tripped and self._clock() < self._open_until:
            return
        policy = policy or self._policy
        self._failures += 1
        if self.is_tripped or self._failures >= policy.failure_threshold:
            seconds = policy.initial_open_seconds * 2 ** min(self._openings, 20)
            self._openings += 1
            self._open_until = self._clock() + min(seconds, policy.max_open_seconds)
