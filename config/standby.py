"""Who takes connections: a process for each core, and others in relief of those that a request holds for long.

Processes that share a core push each other out of its caches: five on two cores took 640 requests a second where two
took 1,070. Yet two are soon held, by a domain check of five seconds or a caller who sends slowly. So as many as
there are cores serve, and of the rest one takes over for each that is held (docs/decisions/0068).
"""

import errno
import mmap
import multiprocessing
import os
import select
import time
from typing import Any

from gunicorn.workers.sync import SyncWorker

LONG_SECONDS = 0.25
LOOK_SECONDS = 0.02
NOBODY, IDLE = 0.0, -1.0


def processes() -> tuple[int, int]:
    """Return how many serve and how many wait in relief: of as many as somebody asked for, all serve."""
    wanted = int(os.environ.get("WEB_CONCURRENCY") or 0)
    cores = multiprocessing.cpu_count()
    return (wanted, 0) if wanted else (cores, cores + 1)


SERVING, WAITING = processes()
# When the process in each place began what it is at, by CLOCK_MONOTONIC, which all share; or IDLE, or NOBODY. They all
# see the same memory, for it is there before they are forked. Twice as many places: a reload starts the new ones first.
_places = memoryview(mmap.mmap(-1, 8 * 2 * (SERVING + WAITING))).cast("d")


class ReliefWorker(SyncWorker):  # type: ignore[misc]
    """A sync worker with a place in the row of its server: the first that live serve."""

    place: int

    def init_process(self) -> None:
        _places[self.place] = IDLE
        super().init_process()

    def accept(self, listener: Any) -> None:
        turn = self._turn()
        if turn >= 0 and turn >= _held():
            raise BlockingIOError(errno.EAGAIN, "others serve")
        super().accept(listener)

    def handle(self, listener: Any, client: Any, addr: Any) -> None:
        _places[self.place] = time.monotonic()
        try:
            super().handle(listener, client, addr)
        finally:
            _places[self.place] = IDLE

    def handle_request(self, listener: Any, req: Any, client: Any, addr: Any) -> None:
        super().handle_request(listener, req, client, addr)
        # gunicorn waits up to two seconds for the caller to close, lest the kernel cuts the answer off at a body that
        # nobody read. A request that was read to its end needs no such care, and would hold a process for a round trip.
        if getattr(req.body.reader, "length", None) == 0:
            client.close()

    def wait(self, timeout: float) -> Any:
        turn = self._turn()
        if turn < _held():
            return super().wait(timeout if turn < 0 else LOOK_SECONDS)
        self.notify()
        # Not for the listener, which others wait for. The pipe tells of signals.
        if select.select([self.PIPE[0]], [], [], LOOK_SECONDS)[0]:
            os.read(self.PIPE[0], 1)
        return None

    def _turn(self) -> int:
        """Return as which of those in relief this process comes, from 0; below 0 it serves."""
        return sum(place != NOBODY for place in _places[: self.place]) - SERVING


def take_place(taken: set[int]) -> int:
    """Return the first place that nobody has; the last one is for whatever exceeds them."""
    return next((place for place in range(len(_places)) if place not in taken), len(_places) - 1)


def leave_place(place: int) -> None:
    """Forget a process that ended, in whatever way."""
    _places[place] = NOBODY


def _held() -> int:
    """Return how many processes a request has held for long."""
    before = time.monotonic() - LONG_SECONDS
    return sum(NOBODY < place < before for place in _places)
