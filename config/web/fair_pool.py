"""The threads that answer requests, with a share for each workspace."""

import logging
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, NamedTuple

log = logging.getLogger("postrider.processes")


class _Task(NamedTuple):
    share: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]

    def run(self) -> None:
        try:
            self.function(*self.arguments)
        # The thread must survive any error.
        except Exception:
            log.exception("a request could not be answered")


class FairPool:
    """Threads that take the tasks of each share in turn.

    threads_of: returns how many of them may work for a share at the same time.
    all_waiting: the tasks of all shares that no thread has taken.
    """

    def __init__(self, threads: int, *, threads_of: Callable[[str], int]) -> None:
        self._threads_of = threads_of
        self._lock = threading.Lock()
        # The last one that ended a task takes the next: its connection to the database is the most recent.
        self._idle: list[SimpleQueue[_Task | None]] = []
        self._waiting: OrderedDict[str, deque[_Task]] = OrderedDict()
        self.all_waiting = 0
        self._running: Counter[str] = Counter()
        self._is_shut = False
        for number in range(threads):
            threading.Thread(target=self._work, name=f"request-{number}", daemon=True).start()

    def submit_for(self, share: str, function: Callable[..., Any], *arguments: Any) -> None:
        """Queue a task of a share."""
        with self._lock:
            self._waiting.setdefault(share, deque()).append(_Task(share, function, arguments))
            self.all_waiting += 1
            if self._idle and (task := self._next()):
                self._idle.pop().put(task)

    def waiting(self, share: str) -> int:
        """Return the number of tasks of a share that no thread has taken."""
        return len(self._waiting.get(share, ()))

    def is_full(self, share: str) -> bool:
        """Return whether a new task of a share would wait for others of this share."""
        return self._running[share] + self.waiting(share) >= self._threads_of(share)

    def shutdown(self, *, wait: bool) -> None:
        """End the threads after the tasks that wait; the caller does not wait for them."""
        with self._lock:
            self._is_shut = True
            for thread in self._idle:
                thread.put(None)

    def _work(self) -> None:
        given: SimpleQueue[_Task | None] = SimpleQueue()
        task = self._after(None, given)
        while task := task or given.get():
            task.run()
            task = self._after(task, given)

    def _after(self, ended: _Task | None, given: "SimpleQueue[_Task | None]") -> _Task | None:
        """Return the next task of a thread; None if it is given one later."""
        with self._lock:
            if ended:
                self._running[ended.share] -= 1
                if not self._running[ended.share]:
                    del self._running[ended.share]
            task = self._next()
            if task is None:
                self._idle.append(given)
                if self._is_shut:
                    given.put(None)
            return task

    def _next(self) -> _Task | None:
        """Take a task whose share may use another thread."""
        for share, tasks in self._waiting.items():
            if self._running[share] < self._threads_of(share):
                self._running[share] += 1
                self.all_waiting -= 1
                del self._waiting[share]
                task = tasks.popleft()
                if tasks:
                    # Moves the share behind the others.
                    self._waiting[share] = tasks
                return task
        return None
