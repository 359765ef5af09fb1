"""The threads that answer requests, with a share for each workspace."""

import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple


class _Task(NamedTuple):
    share: str
    future: "Future[Any]"
    function: Callable[..., Any]
    arguments: tuple[Any, ...]

    def run(self) -> None:
        try:
            self.future.set_result(self.function(*self.arguments))
        except BaseException as error:  # noqa: BLE001 - the reader of the future handles it
            self.future.set_exception(error)


class FairPool:
    """Threads that take the tasks of each share in turn.

    threads_of: returns how many of them may work for a share at the same time.
    """

    def __init__(self, threads: int, *, threads_of: Callable[[str], int]) -> None:
        self._threads_of = threads_of
        self._changed = threading.Condition()
        self._waiting: OrderedDict[str, deque[_Task]] = OrderedDict()
        self._running: Counter[str] = Counter()
        self._is_shut = False
        for number in range(threads):
            threading.Thread(target=self._work, name=f"request-{number}", daemon=True).start()

    def submit_for(self, share: str, function: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        """Queue a task of a share."""
        task = _Task(share, Future(), function, arguments)
        with self._changed:
            self._waiting.setdefault(share, deque()).append(task)
            self._changed.notify()
        return task.future

    def waiting(self, share: str) -> int:
        """Return the number of tasks of a share that no thread has taken."""
        return len(self._waiting.get(share, ()))

    def is_full(self, share: str) -> bool:
        """Return whether a new task of a share would wait for others of this share."""
        return self._running[share] + self.waiting(share) >= self._threads_of(share)

    def shutdown(self, *, wait: bool) -> None:
        """End the threads after the tasks that wait; the caller does not wait for them."""
        with self._changed:
            self._is_shut = True
            self._changed.notify_all()

    def _work(self) -> None:
        while task := self._take():
            try:
                task.run()
            finally:
                self._release(task.share)

    def _take(self) -> _Task | None:
        with self._changed:
            while True:
                for share, tasks in self._waiting.items():
                    if self._running[share] < self._threads_of(share):
                        return self._begin(share, tasks)
                if self._is_shut:
                    return None
                self._changed.wait()

    def _begin(self, share: str, tasks: deque[_Task]) -> _Task:
        self._running[share] += 1
        del self._waiting[share]
        task = tasks.popleft()
        if tasks:
            # Behind those of the other shares.
            self._waiting[share] = tasks
        return task

    def _release(self, share: str) -> None:
        with self._changed:
            self._running[share] -= 1
            if not self._running[share]:
                del self._running[share]
            self._changed.notify()
