"""The drain of a made-up queue: what it claims, how it survives its work's faults, how it stops."""

import threading
import time
from collections import deque
from dataclasses import dataclass

import pytest
from django.db import OperationalError

from lib.worker import processor, shutdown, wakeup
from lib.worker.leases import Lease
from lib.worker.processor import Drain
from tests.stack.stack import wait_for


@dataclass(frozen=True)
class Number:
    key: int


class Numbers:
    """Hands out numbers and remembers what was recorded."""

    kind = "numbers"
    held_back = False

    def __init__(self, count, *, sessions=8, perform=None):
        self.sessions = sessions
        self.waiting = deque(range(count))
        self.recorded, self.claims, self.renewed = [], [], []
        self.record_faults = 0
        self._perform = perform

    def claim(self, limit):
        taken = [Number(self.waiting.popleft()) for _ in range(min(limit, len(self.waiting)))]
        self.claims.append(len(taken))
        self.has_found = bool(taken)
        return taken

    async def perform(self, job, lease):
        if self._perform:
            return await self._perform(job, lease)
        return job.key

    def crashed(self, job, error):
        return f"{job.key} {type(error).__name__}"

    def record(self, results):
        if self.record_faults:
            self.record_faults -= 1
            raise OperationalError("gone")
        self.recorded.extend(results)

    def renew(self, jobs):
        self.renewed.append([job.key for job in jobs])


@pytest.fixture(autouse=True)
def _quiet(monkeypatch, db):
    monkeypatch.setattr(wakeup, "ring", lambda _: None)
    monkeypatch.setattr(wakeup, "answer", lambda _: False)
    monkeypatch.setattr(processor, "TROUBLE_SECONDS", 0.01)
    monkeypatch.setattr(shutdown, "_stopping", threading.Event())


def test_a_drain_empties_the_queue_and_ends():
    work = Numbers(1000)
    Drain(work).run()
    assert sorted(work.recorded) == list(range(1000))


def test_it_claims_no_more_than_it_has_sessions_for():
    work = Numbers(100, sessions=8)
    Drain(work).run()
    assert max(work.claims) == 8


def test_a_crash_of_one_job_is_its_own_result():
    async def perform(job, lease):
        if job.key == 3:
            raise ZeroDivisionError
        return job.key

    work = Numbers(5, perform=perform)
    Drain(work).run()
    assert sorted(map(str, work.recorded)) == ["0", "1", "2", "3 ZeroDivisionError", "4"]


def test_results_wait_while_the_database_is_away():
    work = Numbers(20)
    work.record_faults = 3
    Drain(work).run()
    assert sorted(work.recorded) == list(range(20))


def test_slow_jobs_do_not_keep_the_free_sessions_from_work():
    import asyncio

    release = threading.Event()

    async def perform(job, lease):
        while job.key < 7 and not release.is_set():
            await asyncio.sleep(0.02)
        return job.key

    work = Numbers(60, sessions=8, perform=perform)
    thread = threading.Thread(target=Drain(work).run)
    thread.start()
    try:
        wait_for(lambda: len(work.recorded) == 53, seconds=10, what="the quick ones, while seven are slow")
    finally:
        release.set()
        thread.join()
    assert len(work.recorded) == 60


def test_a_second_call_wakes_the_running_drain_and_returns():
    import asyncio

    async def perform(job, lease):
        await asyncio.sleep(0.5 if job.key == 0 else 0)
        return job.key

    work = Numbers(1, perform=perform)
    drain = Drain(work)
    thread = threading.Thread(target=drain.run)
    thread.start()
    wait_for(lambda: work.claims, seconds=5, what="the first claim")
    work.waiting.append(7)
    started = time.monotonic()
    drain.run()
    assert time.monotonic() - started < 0.2
    thread.join()
    assert sorted(work.recorded) == [0, 7]


def test_who_rings_during_a_drain_is_heard_before_it_ends(monkeypatch):
    """The bell's key keeps rings back until somebody answers; what was accepted behind it must not wait for a timer."""
    work = Numbers(3)
    # Its own ring; one that came during the drain, and what was accepted behind it; none since.
    answers = deque([(True, []), (True, [7]), (False, [])])

    def answer(kind):
        has_rung, late = answers.popleft()
        work.waiting.extend(late)
        return has_rung

    monkeypatch.setattr(wakeup, "answer", answer)
    Drain(work).run()
    assert sorted(work.recorded) == [0, 1, 2, 7]
    assert not answers


def test_a_stop_claims_nothing_more_and_finishes_what_is_under_way():
    async def perform(job, lease):
        shutdown.stop()
        return job.key

    work = Numbers(100, sessions=4, perform=perform)
    Drain(work).run()
    assert sorted(work.recorded) == [0, 1, 2, 3]
    assert len(work.waiting) == 96


def test_leases_under_way_are_renewed(monkeypatch):
    import asyncio

    monkeypatch.setattr(processor, "RENEW_EVERY_SECONDS", 0.05)
    seen = []

    async def perform(job, lease):
        before = lease.renewed_at
        await asyncio.sleep(0.5)
        seen.append(lease.renewed_at > before)
        return job.key

    work = Numbers(2, perform=perform)
    Drain(work).run()
    assert [0, 1] in work.renewed
    assert seen == [True, True]


def test_a_lease_is_held_until_it_may_be_gone():
    from lib.worker.leases import LEASE_SECONDS, MARGIN_SECONDS, boot_seconds

    assert Lease(boot_seconds() - (LEASE_SECONDS - MARGIN_SECONDS - 5)).is_held()
    assert not Lease(boot_seconds() - (LEASE_SECONDS - MARGIN_SECONDS + 1)).is_held()
