"""The timers of a worker: they run a queue processor that nothing else has woken for a while."""

import asyncio
import threading
import time

import pytest

from core.lib.worker import shutdown, timer
from core.lib.worker.processor import QueueProcessor
from tests.core.lib.worker.test_processor import NumberWork
from tests.stack.stack import wait_for


@pytest.fixture(autouse=True)
def _stop_at_the_end(monkeypatch, db):
    stopping = threading.Event()
    monkeypatch.setattr(shutdown, "_stopping", stopping)
    monkeypatch.setattr(timer, "close_old_connections", lambda: None)
    yield
    stopping.set()


def test_it_runs_the_processor_at_once_and_again_after_a_time_without_wake_ups():
    work = NumberWork(1)
    timer.start_timer(QueueProcessor(work, fallback_seconds=0.2))
    wait_for(lambda: work.recorded == [0], seconds=30, what="the first run")
    work.waiting.append(7)
    wait_for(lambda: work.recorded == [0, 7], seconds=30, what="a run without a wake-up")


def test_a_run_that_a_slow_job_prolongs_finds_further_work_without_a_wake_up():
    """The run occupies the thread of the timer: a silent host must not stop the other emails."""
    release = threading.Event()

    async def perform(job, lease):
        while job.key == 0 and not release.is_set():
            await asyncio.sleep(0.02)
        return job.key

    work = NumberWork(1, perform=perform)
    timer.start_timer(QueueProcessor(work, fallback_seconds=0.2))
    try:
        wait_for(lambda: 0 in work.claims, seconds=30, what="a claim of an empty queue")
        work.waiting.append(7)
        wait_for(lambda: work.recorded == [7], seconds=30, what="the second job, while the first is slow")
    finally:
        release.set()


def test_it_does_not_run_a_processor_that_is_woken_in_time():
    work = NumberWork(0)
    processor = QueueProcessor(work, fallback_seconds=30)
    timer.start_timer(processor)
    wait_for(lambda: work.claims, seconds=30, what="the first run")
    processor.run()
    woken_at, claims = processor.woken_at, len(work.claims)
    time.sleep(0.3)
    assert (processor.woken_at, len(work.claims)) == (woken_at, claims)


def test_it_survives_an_error(monkeypatch):
    work = NumberWork(1)
    processor = QueueProcessor(work, fallback_seconds=0.1)
    errors = [ZeroDivisionError()]
    process = processor._process
    monkeypatch.setattr(processor, "_process", lambda: (_ for _ in ()).throw(errors.pop()) if errors else process())
    timer.start_timer(processor)
    wait_for(lambda: work.recorded == [0], seconds=30, what="a run after the error")
