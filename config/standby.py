"""Standby web processes: one process per core serves, and others take over while a request blocks one for long.

Processes that share a core evict each other from its caches: five on two cores served 640 requests per second, two
served 1,070. But two are soon blocked, by a domain check of five seconds or a slow client. So as many processes as
cores serve, and one standby process takes over for each that is blocked (docs/decisions/0068).
"""

import errno
import mmap
import multiprocessing
import os
import select
import time
from typing import Any

from gunicorn.workers.sync import SyncWorker

BLOCKED_AFTER_SECONDS = 0.25
POLL_SECONDS = 0.02
EMPTY, IDLE = 0.0, -1.0


def process_counts() -> tuple[int, int]:
    """Return the number of serving and of standby processes; with WEB_CONCURRENCY set, all of that number serve."""
    configured = int(os.environ.get("WEB_CONCURRENCY") or 0)
    cores = multiprocessing.cpu_count()
    return (configured, 0) if configured else (cores, cores + 1)


SERVING, STANDBY = process_counts()
# One slot per process: the time its current request began, by CLOCK_MONOTONIC, which all processes share; or IDLE, or
# EMPTY. The memory is shared, since it exists before the fork. Twice as many slots as processes: a reload starts the
# new processes first.
_slots = memoryview(mmap.mmap(-1, 8 * 2 * (SERVING + STANDBY))).cast("d")


class StandbyWorker(SyncWorker):  # type: ignore[misc]
    """A sync worker with a slot; the live workers in the first slots serve."""

    slot: int

    def init_process(self) -> None:
        _slots[self.slot] = IDLE
        super().init_process()

    def accept(self, listener: Any) -> None:
        rank = self._standby_rank()
        if rank >= 0 and rank >= _blocked_count():
            raise BlockingIOError(errno.EAGAIN, "other processes serve")
        super().accept(listener)

    def handle(self, listener: Any, client: Any, addr: Any) -> None:
        _slots[self.slot] = time.monotonic()
        try:
            super().handle(listener, client, addr)
        finally:
            _slots[self.slot] = IDLE

    def handle_request(self, listener: Any, req: Any, client: Any, addr: Any) -> None:
        super().handle_request(listener, req, client, addr)
        # gunicorn waits up to two seconds for the client to close, because the kernel may discard the response if the
        # body was not read. After a complete read this is unnecessary and would occupy the process for a round trip.
        if getattr(req.body.reader, "length", None) == 0:
            client.close()

    def wait(self, timeout: float) -> Any:
        rank = self._standby_rank()
        if rank < _blocked_count():
            return super().wait(timeout if rank < 0 else POLL_SECONDS)
        self.notify()
        # Wait for signals, which arrive through the pipe, but not for the listener, on which other processes wait.
        if select.select([self.PIPE[0]], [], [], POLL_SECONDS)[0]:
            os.read(self.PIPE[0], 1)
        return None

    def _standby_rank(self) -> int:
        """Return the position of this process among the standby processes, from 0; negative if it serves."""
        return sum(slot != EMPTY for slot in _slots[: self.slot]) - SERVING


def claim_slot(taken: set[int]) -> int:
    """Return the first free slot; surplus processes share the last one."""
    return next((slot for slot in range(len(_slots)) if slot not in taken), len(_slots) - 1)


def release_slot(slot: int) -> None:
    """Mark the slot of an ended process as empty."""
    _slots[slot] = EMPTY


def _blocked_count() -> int:
    """Return the number of processes that a request has blocked for long."""
    threshold = time.monotonic() - BLOCKED_AFTER_SECONDS
    return sum(EMPTY < slot < threshold for slot in _slots)
