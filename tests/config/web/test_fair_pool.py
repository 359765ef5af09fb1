"""The threads of a web process take the requests of each workspace in turn."""

import threading
from collections.abc import Iterator

import pytest

from config.web.fair_pool import FairPool

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

    def submit(self, share: str):
        return self.pool.submit_for(share, self._run, share)

    def _run(self, share: str) -> str:
        with self.changed:
            self.started.append(share)
            self.changed.notify()
        assert self.go.wait(10)
        return share

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
    assert (pool.waiting("busy"), pool.waiting("other")) == (3, 0)


def test_a_share_that_computes_has_one_thread(held):
    for _ in range(3):
        held.submit("computes")
    held.submit("other")
    assert held.wait_for(2) == ["computes", "other"]


def test_a_share_is_full_when_a_new_task_would_wait(pool, held):
    assert not pool.is_full("busy")
    held.submit("busy")
    assert not pool.is_full("busy")
    held.submit("busy")
    assert pool.is_full("busy")
    assert not pool.is_full("other")


def test_shares_take_turns(pool):
    order: list[str] = []
    gate = threading.Event()
    blocked = [pool.submit_for(f"gate {number}", gate.wait, 10) for number in range(4)]
    tasks = [pool.submit_for(share, order.append, share) for share in ("a", "a", "a", "b", "b", "c")]
    gate.set()
    for task in (*blocked, *tasks):
        task.result(10)
    # Four threads run at the same time, so neighbours may change places.
    assert sorted(order[:3]) == ["a", "b", "c"]


def test_all_tasks_are_answered(pool, held):
    tasks = [held.submit(f"share {number % 3}") for number in range(30)]
    held.go.set()
    assert [task.result(10) for task in tasks] == [f"share {number % 3}" for number in range(30)]


def test_an_error_is_that_of_its_task(pool):
    failed, passed = pool.submit_for("a", int, "x"), pool.submit_for("a", int, "1")
    with pytest.raises(ValueError, match="invalid literal"):
        failed.result(10)
    assert passed.result(10) == 1


def test_waiting_tasks_run_before_the_threads_end(held):
    tasks = [held.submit("busy") for _ in range(4)]
    held.wait_for(2)
    held.pool.shutdown(wait=False)
    held.go.set()
    assert [task.result(10) for task in tasks] == ["busy"] * 4
