"""The queue processor with a queue in memory: claims, errors of its work, wake-ups and shutdown."""

import asyncio
import threading
import time
from collections import Counter, deque
from dataclasses import dataclass

import psycopg
import pytest
from django.db import OperationalError, connection

from core.lib.sql import run
from core.lib.worker import processor, shutdown, wakeup
from core.lib.worker.event_loop import network_loop
from core.lib.worker.leases import LEASE_SECONDS, MARGIN_SECONDS, Lease, boot_seconds
from core.lib.worker.processor import ClaimResult, QueueProcessor
from core.lib.worker.unused_claims import UnusedClaims
from tests.core.lib.worker.outages import end_connection
from tests.stack.stack import wait_for


@dataclass(frozen=True)
class NumberJob:
    key: int
    fence: int = 1

    @property
    def claim(self):
        return self.key, self.fence


class NumberWork:
    """A queue of numbers in memory; results are collected in `recorded`."""

    kind = "numbers"
    is_repeatable = True

    def __init__(self, count, *, sessions=8, perform=None):
        self.sessions = sessions
        self.waiting = deque(range(count))
        self.fences = Counter()
        self.lost = set()
        self.recorded, self.claims, self.renewed = [], [], []
        self.given_back = []
        self.unused = UnusedClaims(self.give_back)
        self.record_errors = 0
        self._perform = perform

    def claim(self, limit):
        keys = [self.waiting.popleft() for _ in range(min(limit, len(self.waiting)))]
        self.fences.update(keys)
        taken = [NumberJob(key, self.fences[key]) for key in keys]
        self.claims.append(len(taken))
        return ClaimResult(taken, has_leased=bool(taken))

    def give_back(self, claims):
        self.given_back.extend(claims)
        self.waiting.extend(key for key, _ in claims)

    async def perform(self, job, lease):
        if self._perform:
            return await self._perform(job, lease)
        return job.key

    def crash_result(self, job, error):
        return f"{job.key} {type(error).__name__}"

    def record(self, results):
        if self.record_errors:
            self.record_errors -= 1
            raise OperationalError("gone")
        self.recorded.extend(results)

    def renew(self, claims):
        kept = [claim for claim in claims if claim not in self.lost]
        self.renewed.append([key for key, _ in kept])
        return kept


@pytest.fixture(autouse=True)
def _quiet(monkeypatch, db):
    monkeypatch.setattr(wakeup, "notify", lambda _: None)
    monkeypatch.setattr(wakeup, "acknowledge", lambda _: None)
    monkeypatch.setattr(processor, "DATABASE_RETRY_SECONDS", 0.01)
    monkeypatch.setattr(shutdown, "_stopping", threading.Event())


def test_a_processor_empties_the_queue_and_returns():
    work = NumberWork(1000)
    QueueProcessor(work).run()
    assert sorted(work.recorded) == list(range(1000))


def test_it_claims_no_more_jobs_than_sessions():
    work = NumberWork(100, sessions=8)
    QueueProcessor(work).run()
    assert max(work.claims) == 8


def test_a_crash_affects_only_its_job():
    async def perform(job, lease):
        if job.key == 3:
            raise ZeroDivisionError
        return job.key

    work = NumberWork(5, perform=perform)
    QueueProcessor(work).run()
    assert sorted(map(str, work.recorded)) == ["0", "1", "2", "3 ZeroDivisionError", "4"]


def test_results_are_kept_while_the_database_is_down():
    work = NumberWork(20)
    work.record_errors = 3
    QueueProcessor(work).run()
    assert sorted(work.recorded) == list(range(20))


def test_claims_of_an_outage_are_given_back_before_the_next_claim():
    class Interrupted(NumberWork):
        def claim(self, limit):
            with self.unused.claiming() as claims:
                result = super().claim(limit)
                claims.extend(job.claim for job in result.jobs)
                if len(self.claims) == 1:
                    raise OperationalError("gone")
                return result

    work = Interrupted(3)
    QueueProcessor(work).run()
    assert sorted(work.given_back) == [(0, 1), (1, 1), (2, 1)]
    assert sorted(work.recorded) == [0, 1, 2]


def conflict(sqlstate):
    error = OperationalError("conflict")
    error.__cause__ = psycopg.errors.lookup(sqlstate)()
    return error


@pytest.mark.parametrize("sqlstate", ["40001", "40P01", "55P03"])
def test_a_conflict_of_one_result_delays_no_other_and_keeps_the_connection(monkeypatch, sqlstate):
    class Conflicting(NumberWork):
        conflicts = 3

        def record(self, results):
            if 3 in results and self.conflicts:
                self.conflicts -= 1
                raise conflict(sqlstate)
            super().record(results)

    closed = []
    monkeypatch.setattr(connection, "close", lambda: closed.append(1))
    work = Conflicting(5)
    QueueProcessor(work).run()
    assert sorted(work.recorded) == [0, 1, 2, 3, 4]
    assert work.recorded[-1] == 3
    assert not closed


def test_a_claim_that_loses_a_conflict_is_repeated():
    class Conflicting(NumberWork):
        def claim(self, limit):
            result = super().claim(limit)
            if len(self.claims) == 1:
                self.unused.add(job.claim for job in result.jobs)
                raise conflict("40P01")
            return result

    work = Conflicting(2)
    QueueProcessor(work).run()
    assert sorted(work.recorded) == [0, 1]


class DatabaseWork(NumberWork):
    """A queue whose claims and records use PostgreSQL; `perform` ends their connection at the first job."""

    backend_pid = 0

    def claim(self, limit):
        ((self.backend_pid,),) = run("SELECT pg_backend_pid()")
        return super().claim(limit)

    async def perform(self, job, lease):
        if job.key == 0:
            end_connection(self.backend_pid)
        return job.key

    def record(self, results):
        run("SELECT 1")
        super().record(results)


@pytest.mark.django_db(transaction=True)
def test_a_lost_connection_is_one_line_without_a_traceback_and_the_work_continues(monkeypatch, caplog):
    monkeypatch.setattr(processor, "DATABASE_RETRY_SECONDS", 0)
    work = DatabaseWork(20)
    ((pid,),) = run("SELECT pg_backend_pid()")
    end_connection(pid)
    numbers = QueueProcessor(work)
    # The timer does so every two seconds.
    for _ in range(3):
        numbers.run()
    assert sorted(work.recorded) == list(range(20))
    # The second one, in the middle of the work, is less than a minute later.
    lines = [(one.getMessage(), one.exc_info) for one in caplog.records]
    assert lines == [("the database does not respond", None), ("the database responds again", None)]
    assert "terminating connection" in caplog.records[0].data["error"]


def test_slow_jobs_do_not_block_free_sessions():
    release = threading.Event()

    async def perform(job, lease):
        while job.key < 7 and not release.is_set():
            await asyncio.sleep(0.02)
        return job.key

    work = NumberWork(60, sessions=8, perform=perform)
    thread = threading.Thread(target=QueueProcessor(work).run)
    thread.start()
    try:
        wait_for(lambda: len(work.recorded) == 53, seconds=10, what="the fast jobs, while seven are slow")
    finally:
        release.set()
        thread.join()
    assert len(work.recorded) == 60


def start_with_a_slow_job() -> tuple[NumberWork, QueueProcessor, threading.Thread]:
    async def perform(job, lease):
        await asyncio.sleep(0.5 if job.key == 0 else 0)
        return job.key

    work = NumberWork(1, perform=perform)
    running = QueueProcessor(work)
    thread = threading.Thread(target=running.run)
    thread.start()
    return work, running, thread


def test_a_second_call_wakes_the_running_processor_and_returns():
    work, running, thread = start_with_a_slow_job()
    wait_for(lambda: work.claims, seconds=5, what="the first claim")
    work.waiting.append(7)
    started = time.monotonic()
    running.run()
    assert time.monotonic() - started < 0.2
    thread.join()
    assert sorted(work.recorded) == [0, 7]


def test_a_notification_is_acknowledged_before_the_queue_is_read(monkeypatch):
    """Later notifications are coalesced into one until it is acknowledged; the claim after that finds their work."""
    work = NumberWork(3)
    monkeypatch.setattr(wakeup, "acknowledge", lambda _: work.waiting.append(7))
    QueueProcessor(work).run_notified()
    assert sorted(work.recorded) == [0, 1, 2, 7]


def test_a_notification_during_a_run_is_not_lost(monkeypatch):
    work, running, thread = start_with_a_slow_job()
    wait_for(lambda: len(work.claims) >= 2, seconds=5, what="a claim of an empty queue")
    monkeypatch.setattr(wakeup, "acknowledge", lambda _: work.waiting.append(7))
    running.run_notified()
    thread.join()
    assert sorted(work.recorded) == [0, 7]


def test_a_run_of_an_empty_queue_does_not_use_redis(monkeypatch):
    calls = []
    monkeypatch.setattr(wakeup, "acknowledge", calls.append)
    monkeypatch.setattr(wakeup, "notify", calls.append)
    QueueProcessor(NumberWork(0)).run()
    assert calls == []


def test_a_shutdown_stops_claims_and_finishes_jobs_in_flight():
    async def perform(job, lease):
        shutdown.stop()
        return job.key

    work = NumberWork(100, sessions=4, perform=perform)
    QueueProcessor(work).run()
    assert sorted(work.recorded) == [0, 1, 2, 3]
    assert len(work.waiting) == 96


@pytest.mark.parametrize("is_repeatable", [True, False])
def test_jobs_in_flight_at_the_end_of_a_shutdown_are_given_back_if_they_may_be_repeated(monkeypatch, is_repeatable):
    async def perform(job, lease):
        shutdown.stop()
        await asyncio.wait_for(ended.wait(), 30)

    ended = asyncio.Event()
    monkeypatch.setattr(shutdown, "GRACE_SECONDS", 0.1)
    work = NumberWork(2, perform=perform)
    work.is_repeatable = is_repeatable
    QueueProcessor(work).run()
    network_loop().call_soon_threadsafe(ended.set)
    assert sorted(work.given_back) == ([(0, 1), (1, 1)] if is_repeatable else [])


def test_leases_of_jobs_in_flight_are_renewed(monkeypatch):
    monkeypatch.setattr(processor, "RENEW_EVERY_SECONDS", 0.05)
    renewals = []

    async def perform(job, lease):
        before = lease.renewed_at
        await asyncio.sleep(0.5)
        renewals.append(lease.renewed_at > before)
        return job.key

    work = NumberWork(2, perform=perform)
    QueueProcessor(work).run()
    assert [0, 1] in work.renewed
    assert renewals == [True, True]


def test_a_lease_that_another_worker_took_over_is_not_renewed(monkeypatch):
    """A database that does not respond for longer than the lease: another worker sends the message meanwhile."""
    monkeypatch.setattr(processor, "RENEW_EVERY_SECONDS", 0.05)
    renewals = {}

    async def perform(job, lease):
        before = lease.renewed_at
        while len(work.renewed) < 2:
            await asyncio.sleep(0.02)
        renewals[job.key] = lease.renewed_at > before
        return job.key

    work = NumberWork(2, perform=perform)
    work.lost = {(1, 1)}
    QueueProcessor(work).run()
    assert renewals == {0: True, 1: False}


def test_a_row_claimed_again_by_the_process_that_lost_its_lease_has_two_jobs_in_flight():
    """After a machine slept, its first claim may return rows whose earlier jobs still wait for a server."""

    async def perform(job, lease):
        if job.fence == 1:
            work.waiting.append(job.key)
            while not second.is_set():
                numbers.run()
                await asyncio.sleep(0.02)
        second.set()
        return job.claim

    second = threading.Event()
    work = NumberWork(1, perform=perform)
    numbers = QueueProcessor(work)
    numbers.run()
    assert sorted(work.recorded) == [(0, 1), (0, 2)]
    assert numbers._in_flight == {}


def test_a_lease_is_valid_until_its_margin():
    assert Lease(boot_seconds() - (LEASE_SECONDS - MARGIN_SECONDS - 5)).is_valid()
    assert not Lease(boot_seconds() - (LEASE_SECONDS - MARGIN_SECONDS + 1)).is_valid()
