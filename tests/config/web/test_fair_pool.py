"""The threads of a web process take the requests of each workspace in turn."""

import threading
from collections.abc import Iterator
from queue import SimpleQueue
from typing import TypeVar

import pytest

from config.web.fair_pool import FairPool

T = TypeVar("T")

LIMITS = {"computes": 1}


@pytest.fixture
def pool() -> Iterator[FairPool]:
    pool = FairPool(4, threads_of=lambda share: LIMITS.get(share, 2))
    yield pool
    pool.shutdown(wait=False)


class Held:
    """Tasks that run until they are let go."""

    def __init__(self, pool: FairPool) -> None:
        self.pool, self.started, self.go = pool, [], threading.Event()
        self.changed = threading.Condition()

    def submit(self, share: str) -> None:
        self.pool.submit_for(share, self._run, share)

    def _run(self, share: str) -> None:
        with self.changed:
            self.started.append(share)
            self.changed.notify()
        assert self.go.wait(10)

    def wait_for(self, count: int) -> list[str]:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.started) == count, 5), self.started
        return sorted(self.started)


@pytest.fixture
def held(pool: FairPool) -> Iterator[Held]:
    held = Held(pool)
    yield held
    held.go.set()


def test_a_share_has_half_of_the_threads(pool, held):
    for _ in range(5):
        held.submit("busy")
    held.wait_for(2)
    held.submit("other")
    assert held.wait_for(3) == ["busy", "busy", "other"]
    assert (pool.waiting("busy"), pool.waiting("other"), pool.all_waiting) == (3, 0, 3)


def test_a_share_that_computes_has_one_thread(held):
    for _ in range(3):
        held.submit("computes")
    held.submit("other")
    assert held.wait_for(2) == ["computes", "other"]


def test_a_share_keeps_its_limit_when_one_of_its_tasks_ends(pool):
    started: SimpleQueue[int] = SimpleQueue()
    gates = [threading.Event() for _ in range(4)]

    def run(number: int) -> None:
        started.put(number)
        gates[number].wait(10)

    for number in range(3):
        pool.submit_for("busy", run, number)
    assert sorted(take(started, 2)) == [0, 1]
    gates[0].set()
    assert take(started, 1) == [2]
    pool.submit_for("busy", run, 3)
    assert pool.waiting("busy") == 1
    for gate in gates:
        gate.set()


def test_a_share_is_full_when_a_new_task_would_wait(pool, held):
    assert not pool.is_full("busy")
    held.submit("busy")
    assert not pool.is_full("busy")
    held.submit("busy")
    assert pool.is_full("busy")
    assert not pool.is_full("other")


def test_shares_take_turns(pool):
    order: SimpleQueue[str] = SimpleQueue()
    gate = threading.Event()
    for number in range(4):
        pool.submit_for(f"gate {number}", gate.wait, 10)
    for share in ("a", "a", "a", "b", "b", "c"):
        pool.submit_for(share, order.put, share)
    gate.set()
    # Four threads run at the same time, so neighbours may change places.
    assert sorted(take(order, 6)[:3]) == ["a", "b", "c"]


def test_all_tasks_are_answered(held):
    for number in range(30):
        held.submit(f"share {number % 3}")
    held.go.set()
    assert held.wait_for(30) == sorted(f"share {number % 3}" for number in range(30))
    assert held.pool.all_waiting == 0


def test_an_error_ends_its_task_only(pool, caplog):
    done: SimpleQueue[str] = SimpleQueue()
    for _ in range(8):
        pool.submit_for("a", int, "x")
    pool.submit_for("a", done.put, "after")
    assert take(done, 1) == ["after"]
    assert "a request could not be answered" in caplog.text


def test_waiting_tasks_run_before_the_threads_end(held):
    for _ in range(4):
        held.submit("busy")
    held.wait_for(2)
    held.pool.shutdown(wait=False)
    held.go.set()
    assert held.wait_for(4) == ["busy"] * 4


def take(queue: "SimpleQueue[T]", count: int) -> list[T]:
    return [queue.get(timeout=10) for _ in range(count)]
