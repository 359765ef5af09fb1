"""Circuit breaker of a named transport: opens after refused logins or unreachable hosts, closes without flapping."""

import time
from collections import deque

from core.delivery.transports.circuit_breaker import BreakerPolicy, CircuitBreaker, Clock
from core.delivery.transports.transports_file import FailoverKind

LOGINS = 3
CONNECTION_FAILURES = 5
WINDOW_SECONDS = 60.0
# Distinct messages; for a direct transport, distinct domains: one dead mail host says nothing about the transport.
MIN_SUBJECTS = {"direct": 5}
USUAL_MIN_SUBJECTS = 2
CLOSING_SUCCESSES = 3
MIN_OPEN_SECONDS = 120.0
PROBES = BreakerPolicy(failure_threshold=1, initial_open_seconds=30.0, max_open_seconds=900.0)


class TransportBreaker(CircuitBreaker):
    """Counts failures until they open it; then the probes of CircuitBreaker decide.

    It closes after three successes, two minutes after it opened at the earliest. Meanwhile one that has answered a
    probe is recovering: probes go on, and a route without another transport may send everything by it.

    kind: the kind of the transport.
    """

    def __init__(self, kind: str, *, clock: Clock = time.monotonic) -> None:
        super().__init__(PROBES, clock=clock)
        self._min_subjects = MIN_SUBJECTS.get(kind, USUAL_MIN_SUBJECTS)
        self._refused_logins = 0
        self._failed: deque[tuple[float, str]] = deque(maxlen=100)
        self._successes = 0
        self._opened_at = 0.0

    @property
    def is_recovering(self) -> bool:
        """Return whether the last probe succeeded, and what followed did not fail as often as to open a breaker."""
        return self.is_tripped and self._successes > 0

    def record(self, kind: FailoverKind | None, *, subject: str) -> None:
        """Count a failure that concerns the transport. subject: the message or domain that failed."""
        is_due = self._clock() >= self._open_until
        if self.is_tripped and (is_due or not self.is_recovering):
            self._successes = 0
            self.record_failure()
            return
        if kind is FailoverKind.LOGIN:
            self._refused_logins += 1
        elif kind is FailoverKind.UNREACHABLE:
            self._failed.append((self._clock(), subject))
        if self._refused_logins >= LOGINS or self._is_unreachable():
            self._open()

    def record_success(self) -> None:
        """Count an answer to a message; one of a delivery that began before the breaker opened proves nothing."""
        self._refused_logins = 0
        self._failed.clear()
        if not self.is_tripped or (self._clock() < self._open_until and not self.is_recovering):
            return
        self._successes += 1
        if self._successes >= CLOSING_SUCCESSES and self._clock() - self._opened_at >= MIN_OPEN_SECONDS:
            self._successes = 0
            super().record_success()
            return
        self.postpone_probe()

    def _open(self) -> None:
        self._opened_at = self._open_until = self._clock()
        self._successes = 0
        self.record_failure()

    def _is_unreachable(self) -> bool:
        since = self._clock() - WINDOW_SECONDS
        recent = [subject for at, subject in self._failed if at > since]
        return len(recent) >= CONNECTION_FAILURES and len(set(recent)) >= self._min_subjects
