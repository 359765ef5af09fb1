"""The queue processor: claims, performs and records the work of one queue; emails and webhooks share it.

One thread runs all SQL: it claims jobs, submits them to the network loop, collects their results and records them.
A process claims only as many jobs as it has free sessions, and none during shutdown.
"""

import logging
import queue
import threading
import time
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from django.db import Error, InterfaceError, OperationalError, connection

from core.lib.sql import is_conflict, is_outage
from core.lib.worker import wakeup
from core.lib.worker.database_outage import database_outage
from core.lib.worker.event_loop import submit_all
from core.lib.worker.leases import RENEW_EVERY_SECONDS, Lease, boot_seconds
from core.lib.worker.shutdown import grace_seconds_left, is_stopping
from core.lib.worker.unused_claims import UnusedClaims

log = logging.getLogger("postrider.worker")

MAX_RECORD_BATCH = 100
IDLE_SECONDS = 0.02
POLL_SECONDS = 0.1
NOTIFY_EVERY_SECONDS = 1.0
MIN_CLAIM = 16
DATABASE_RETRY_SECONDS = 1.0
# More than the interval at which beat wakes the queues of emails and webhooks (config/celery.py).
FALLBACK_SECONDS = 5.0


class Job(Protocol):
    """A job in flight. claim: distinct from later claims of the same row, which may begin before this one ends."""

    @property
    def claim(self) -> Hashable: ...


J = TypeVar("J", bound=Job)
R = TypeVar("R")


@dataclass(frozen=True)
class ClaimResult(Generic[J]):
    """The result of a claim.

    has_leased: whether it leased any entry, including entries that did not become a job.
    has_waiting: whether ready entries may wait for jobs in flight, so that each recorded result justifies another
    claim.
    again_after: seconds until the next claim without a wake-up; None for as long as before.
    """

    jobs: Sequence[J]
    has_leased: bool
    has_waiting: bool = False
    again_after: float | None = None


class QueueWork(Protocol[J, R]):
    """The queue-specific part of a processor.

    `perform` and `crash_result` run in the network loop, all other methods in the processor's thread.
    unused: claims that this queue found to be unused; the processor gives them back as soon as it can.
    is_repeatable: whether a job may be performed twice unnoticed, so that those in flight at the end of a shutdown are
    unused, too.
    """

    kind: str
    sessions: int
    is_repeatable: bool
    unused: UnusedClaims[Any]

    def claim(self, limit: int) -> ClaimResult[J]:
        """Lease up to `limit` jobs, in a committed transaction."""

    async def perform(self, job: J, lease: Lease) -> R:
        """Perform one job; it must not take the last step once the lease is no longer valid."""

    def crash_result(self, job: J, error: BaseException) -> R:
        """Return the result of a job whose `perform` raised: an internal error."""

    def record(self, results: Sequence[R]) -> None:
        """Record results; called again with the same ones, or with each alone, after an error of the database."""

    def renew(self, claims: Collection[Any]) -> Collection[Hashable]:
        """Renew the leases of jobs in flight; return the claims whose lease this process still has."""


class QueueProcessor(Generic[J, R]):
    """The processor of one queue in this process.

    fallback_seconds: how long it waits for a wake-up before it claims without one. Between two runs,
    core.lib.worker.timer waits; a run may last as long as a slow host does, and can occupy the thread of the timer.
    """

    def __init__(self, work: QueueWork[J, R], *, fallback_seconds: float = FALLBACK_SECONDS) -> None:
        self.work = work
        self.fallback_seconds = fallback_seconds
        # The last call of `run`, by the monotonic clock.
        self.woken_at = float("-inf")
        self._lock = threading.Lock()
        self._wakeup = threading.Event()
        self._in_flight: dict[Hashable, Lease] = {}
        # Filled by the network loop: a finished job's claim and result; None only interrupts the wait.
        self._finished: queue.SimpleQueue[tuple[Hashable, R] | None] = queue.SimpleQueue()
        self._unrecorded: list[R] = []
        self._has_waiting = False
        self._claimed_at = self._renewed_at = self._notified_at = 0.0
        # Half of the sessions: the others keep working while this batch is recorded and replaced.
        self._batch_size = min(max(work.sessions // 2, MIN_CLAIM), MAX_RECORD_BATCH)

    def run(self) -> None:
        """Process the queue until it is empty. If the processor already runs, wake it and return."""
        self.woken_at = time.monotonic()
        self._wakeup.set()
        self._finished.put(None)
        while self._wakeup.is_set() and not is_stopping() and self._lock.acquire(blocking=False):
            try:
                self._process()
            finally:
                self._lock.release()

    def run_notified(self) -> None:
        """Process the queue after a notification; from now on, another one sends another task."""
        # First: a claim that begins later finds the work of all notifications that were coalesced into this one.
        wakeup.acknowledge(self.work.kind)
        self.run()

    def join(self) -> None:
        """Wait for a running processor to finish, at most for the grace period of a shutdown."""
        if self._lock.acquire(timeout=grace_seconds_left()):
            self._lock.release()

    def _process(self) -> None:
        while self._has_work():
            try:
                self._step()
            except (OperationalError, InterfaceError) as error:
                self._wait_for_database(error)
        if is_stopping() and self.work.is_repeatable:
            self._end_repeatable()

    def _wait_for_database(self, error: Exception) -> None:
        """Wait before the next step. Nothing is claimed meanwhile; results and unused claims stay in memory."""
        if is_conflict(error):
            # PostgreSQL has waited for the locks: the next step begins at once, with the same connection.
            data = {"queue": self.work.kind, "error": f"{type(error).__name__}: {error}".partition("\n")[0]}
            log.warning("a transaction is repeated", extra={"data": data})
            return
        database_outage.record_failure(error)
        connection.close()
        time.sleep(DATABASE_RETRY_SECONDS)

    def _end_repeatable(self) -> None:
        """Give back the claims of jobs in flight at the end of the grace period: their workers did not crash."""
        self.work.unused.add(self._in_flight)
        try:
            self.work.unused.give_back()
        except (OperationalError, InterfaceError) as error:
            log.warning("claims could not be given back", exc_info=error, extra={"data": {"queue": self.work.kind}})

    def _has_work(self) -> bool:
        is_busy = bool(self._in_flight or self._unrecorded or self.work.unused)
        if is_stopping():
            return is_busy and grace_seconds_left() > 0
        return is_busy or self._wakeup.is_set()

    def _step(self) -> None:
        self._give_back()
        # Claim first: the sessions work on new jobs while results are recorded.
        if self._may_claim():
            self._claim()
        self._record()
        self._collect()
        self._renew()

    def _give_back(self) -> None:
        if self.work.unused:
            self.work.unused.give_back()
            self._wakeup.set()

    def _may_claim(self) -> bool:
        seconds_since_claim = time.monotonic() - self._claimed_at
        if is_stopping() or not (self._wakeup.is_set() or seconds_since_claim > self.fallback_seconds):
            return False
        free = self._free_sessions
        # Claim for a few free sessions only after a pause: slow deliveries may occupy the others for minutes.
        return free >= min(MIN_CLAIM, self.work.sessions) or (free > 0 and seconds_since_claim > IDLE_SECONDS)

    @property
    def _free_sessions(self) -> int:
        return self.work.sessions - len(self._in_flight)

    def _claim(self) -> None:
        free = self._free_sessions
        self._wakeup.clear()
        self._claimed_at = time.monotonic()
        # Read before the statement, so that the lease never seems younger than it is.
        claimed_at = boot_seconds()
        result = self.work.claim(free)
        database_outage.record_success()
        self._has_waiting = result.has_waiting
        if result.again_after:
            self.fallback_seconds = result.again_after
        if result.jobs:
            self._start(result.jobs, claimed_at)
        if result.has_leased:
            self._wakeup.set()
        if len(result.jobs) >= free:
            self._notify_others()

    def _start(self, jobs: Sequence[J], claimed_at: float) -> None:
        started = [(job, Lease(claimed_at)) for job in jobs]
        self._in_flight.update((job.claim, lease) for job, lease in started)
        # One call into the loop for all jobs: a future for each costs as much as a short job.
        submit_all([self._perform(job, lease) for job, lease in started])

    async def _perform(self, job: J, lease: Lease) -> None:
        try:
            result = await self.work.perform(job, lease)
        # An unexpected error becomes the result of its job; the processor and the other jobs continue.
        except Exception as error:
            log.exception("a job crashed")
            result = self.work.crash_result(job, error)
        self._finished.put((job.claim, result))

    def _notify_others(self) -> None:
        """Wake other processes when the queue holds more than this process can claim."""
        if time.monotonic() - self._notified_at > NOTIFY_EVERY_SECONDS:
            self._notified_at = time.monotonic()
            wakeup.notify(self.work.kind)

    def _collect(self) -> None:
        """Collect a batch of results: wait POLL_SECONDS for the first and IDLE_SECONDS for each further one."""
        wait = POLL_SECONDS if self._in_flight else 0.0
        while len(self._unrecorded) < self._batch_size:
            if not self._in_flight:
                wait = 0.0
            try:
                finished = self._finished.get(timeout=wait)
            except queue.Empty:
                return
            if finished is None:
                return
            claim, result = finished
            del self._in_flight[claim]
            self._unrecorded.append(result)
            wait = IDLE_SECONDS

    def _record(self) -> None:
        if not self._unrecorded:
            return
        try:
            self.work.record(self._unrecorded)
            self._unrecorded = []
        except Error as error:
            if is_outage(error):
                raise
            log.warning("a batch of results could not be recorded", exc_info=error)
            self._record_each()
        if self._has_waiting:
            self._wakeup.set()

    def _record_each(self) -> None:
        """Record results one by one and drop those that the database refuses; their leases expire.

        One that conflicts with another transaction is recorded in a later step, behind the others.
        """
        while self._unrecorded:
            try:
                self.work.record(self._unrecorded[:1])
            except Error as error:
                if is_outage(error):
                    raise
                if is_conflict(error):
                    self._unrecorded.append(self._unrecorded.pop(0))
                    return
                log.exception("a result could not be recorded")
            del self._unrecorded[0]

    def _renew(self) -> None:
        if not self._in_flight or time.monotonic() - self._renewed_at < RENEW_EVERY_SECONDS:
            return
        self._renewed_at = time.monotonic()
        renewed_at = boot_seconds()
        for claim in self.work.renew(self._in_flight):
            self._in_flight[claim].renewed_at = renewed_at
