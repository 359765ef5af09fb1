"""How a worker empties a queue, written once for emails and webhooks.

One thread does all the SQL: it claims, hands jobs to the network loop, collects their results and
records them. A process claims only what it has free sessions for, and nothing while it is stopping.
"""

import logging
import queue
import threading
import time
from collections.abc import Collection, Hashable, Sequence
from typing import Generic, Protocol, TypeVar

from django.db import DatabaseError, InterfaceError, OperationalError, connection

from lib.worker import wakeup
from lib.worker.event_loop import submit_all
from lib.worker.leases import RENEW_EVERY_SECONDS, Lease, boot_seconds
from lib.worker.shutdown import is_stopping, seconds_left

log = logging.getLogger("postrider.drain")

RECORD_AT_ONCE = 100
IDLE_SECONDS = 0.02
LOOK_EVERY_SECONDS = 0.1
RING_EVERY_SECONDS = 1.0
MINIMUM_CLAIM = 16
TROUBLE_SECONDS = 1.0


class Job(Protocol):
    @property
    def key(self) -> Hashable: ...


J = TypeVar("J", bound=Job)
R = TypeVar("R")


class Work(Protocol[J, R]):
    """What a queue brings along. `perform` and `crashed` run in the network loop, the rest in the draining thread."""

    kind: str
    sessions: int

    @property
    def held_back(self) -> bool:
        """Whether ready work may wait for what is under way, so that every result is worth another claim."""

    @property
    def has_found(self) -> bool:
        """Whether the last claim leased anything: jobs, or what did not become one."""

    def claim(self, limit: int) -> Sequence[J]:
        """Lease up to limit jobs, in a committed transaction."""

    async def perform(self, job: J, lease: Lease) -> R:
        """Do one job; a lease that is no longer held must keep it from the last step."""

    def crashed(self, job: J, error: BaseException) -> R:
        """Return the result of a job whose `perform` raised: a fault of ours."""

    def record(self, results: Sequence[R]) -> None:
        """Write results down, in one transaction; to be called again with those that were not written."""

    def renew(self, jobs: Collection[J]) -> None:
        """Prolong the leases of jobs under way."""


class Drain(Generic[J, R]):
    """The drain of one kind of work in this process."""

    def __init__(self, work: Work[J, R]) -> None:
        self.work = work
        self._lock = threading.Lock()
        self._rung = threading.Event()
        self._in_flight: dict[Hashable, tuple[J, Lease]] = {}
        # What the loop hands back: a finished job's key and result, or None as a tap on the shoulder.
        self._inbox: queue.SimpleQueue[tuple[Hashable, R] | None] = queue.SimpleQueue()
        self._unrecorded: list[R] = []
        self._claimed_at = self._renewed_at = self._invited_at = 0.0
        # A part of the sessions: the others go on while this many are written down and replaced.
        self._batch = min(max(work.sessions // 2, MINIMUM_CLAIM), RECORD_AT_ONCE)

    def run(self) -> None:
        """Empty the queue; where a drain runs already, wake it and return."""
        self._rung.set()
        self._inbox.put(None)
        while self._rung.is_set() and not is_stopping() and self._lock.acquire(blocking=False):
            try:
                self._empty()
            finally:
                self._lock.release()

    def join(self) -> None:
        """Wait for a running drain to end, as long as a stop may take."""
        if self._lock.acquire(timeout=seconds_left()):
            self._lock.release()

    def _empty(self) -> None:
        wakeup.answer(self.work.kind)
        while self._has_work():
            try:
                self._step()
            except (OperationalError, InterfaceError):
                # Nothing is claimed while the database is away; results wait in memory until it is back.
                log.exception("the database does not answer")
                connection.close()
                time.sleep(TROUBLE_SECONDS)

    def _has_work(self) -> bool:
        under_way = bool(self._in_flight or self._unrecorded)
        if is_stopping():
            return under_way and seconds_left() > 0
        return under_way or self._rung.is_set()

    def _step(self) -> None:
        # New work first: the sessions are busy with it while the results are written down.
        if self._may_claim():
            self._claim()
        self._record()
        self._collect()
        self._renew()

    def _may_claim(self) -> bool:
        if is_stopping() or not self._rung.is_set():
            return False
        free = self._free
        # Few free sessions are worth a claim only after a moment: slow mail may hold the others for minutes.
        return free >= min(MINIMUM_CLAIM, self.work.sessions) or (
            free > 0 and time.monotonic() - self._claimed_at > IDLE_SECONDS
        )

    @property
    def _free(self) -> int:
        return self.work.sessions - len(self._in_flight)

    def _claim(self) -> None:
        free = self._free
        self._rung.clear()
        self._claimed_at = time.monotonic()
        # Taken before the statement, so that the lease never seems younger than it is.
        claimed_at = boot_seconds()
        jobs = self.work.claim(free)
        if jobs:
            self._start(jobs, claimed_at)
        if self.work.has_found:
            self._rung.set()
        elif wakeup.answer(self.work.kind):
            # Whoever rang behind that ring was not let through, and may have come after this claim: one look more.
            self._rung.set()
        if len(jobs) >= free:
            self._invite()

    def _start(self, jobs: Sequence[J], claimed_at: float) -> None:
        started = [(job, Lease(claimed_at)) for job in jobs]
        self._in_flight.update((job.key, (job, lease)) for job, lease in started)
        # One call into the loop for all of them: a future for each costs as much as a short job.
        submit_all([self._perform(job, lease) for job, lease in started])

    async def _perform(self, job: J, lease: Lease) -> None:
        try:
            result = await self.work.perform(job, lease)
        # Whatever a job dies of is its result; the drain and the other jobs go on.
        except Exception as error:
            log.exception("a job crashed")
            result = self.work.crashed(job, error)
        self._inbox.put((job.key, result))

    def _invite(self) -> None:
        """Let other processes join where there is more than this one can take."""
        if time.monotonic() - self._invited_at > RING_EVERY_SECONDS:
            self._invited_at = time.monotonic()
            wakeup.ring(self.work.kind)

    def _collect(self) -> None:
        """Wait for results: the first for a moment, more of them until none comes for IDLE_SECONDS, or none can."""
        wait = LOOK_EVERY_SECONDS if self._in_flight else 0.0
        while len(self._unrecorded) < self._batch:
            if not self._in_flight:
                wait = 0.0
            try:
                finished = self._inbox.get(timeout=wait)
            except queue.Empty:
                return
            if finished is None:
                return
            key, result = finished
            del self._in_flight[key]
            self._unrecorded.append(result)
            wait = IDLE_SECONDS

    def _record(self) -> None:
        if not self._unrecorded:
            return
        try:
            self.work.record(self._unrecorded)
        except (OperationalError, InterfaceError):
            raise
        except DatabaseError:
            log.exception("results could not be recorded together")
            self._record_each()
        self._unrecorded = []
        if self.work.held_back:
            self._rung.set()

    def _record_each(self) -> None:
        """Keep one result that the database refuses from holding up the others; its lease will end."""
        while self._unrecorded:
            try:
                self.work.record(self._unrecorded[:1])
            except (OperationalError, InterfaceError):
                raise
            except DatabaseError:
                log.exception("a result could not be recorded")
            del self._unrecorded[0]

    def _renew(self) -> None:
        if not self._in_flight or time.monotonic() - self._renewed_at < RENEW_EVERY_SECONDS:
            return
        self._renewed_at = time.monotonic()
        renewed_at = boot_seconds()
        self.work.renew([job for job, _ in self._in_flight.values()])
        for _, lease in self._in_flight.values():
            lease.renewed_at = renewed_at
