"""Hit buffer: opens and clicks are recorded in batches, and responses do not wait for the database.

There is one bounded buffer per process. A thread empties it every 200 ms, and process exit empties it as well.
While the database is unreachable, hits are kept; hits beyond CAPACITY are counted and dropped.
See docs/decisions/0026.
"""

import atexit
import logging
import os
import threading
import time
from collections import deque

from django.db import InterfaceError, OperationalError, close_old_connections, connection

from emails.feedback.opens_and_clicks import Hit, record_hits

CAPACITY = 10_000
BATCH_SIZE = 100
GATHER_SECONDS = 0.2
RETRY_SECONDS = 2.0
# Idle time after which the thread closes its database connection.
IDLE_SECONDS = 5.0

log = logging.getLogger("postrider.tracking")


class HitRecorder:
    """A bounded buffer of hits and the thread that records them."""

    def __init__(self) -> None:
        self._hits: deque[Hit] = deque()
        self._has_hits = threading.Event()
        self._flush_lock = threading.Lock()
        self._process = 0
        self._dropped = 0

    def add(self, hit: Hit) -> None:
        """Add a hit to the next batch, without blocking."""
        if len(self._hits) >= CAPACITY:
            self._dropped += 1
            return
        self._hits.append(hit)
        self._start()
        self._has_hits.set()

    def flush(self) -> bool:
        """Record all buffered hits; return whether the database was reachable."""
        with self._flush_lock:
            self._log_dropped()
            while batch := self._take_batch():
                try:
                    _record(batch)
                except (OperationalError, InterfaceError) as error:
                    self._hits.extendleft(reversed(batch))
                    log.warning(
                        "hits wait for the database",
                        extra={"data": {"count": len(self._hits), "error": type(error).__name__}},
                    )
                    return False
        return True

    def _take_batch(self) -> list[Hit]:
        return [self._hits.popleft() for _ in range(min(BATCH_SIZE, len(self._hits)))]

    def _start(self) -> None:
        """Start the thread once per process: gunicorn forks after loading, and threads do not survive a fork."""
        if self._process != os.getpid():
            self._process = os.getpid()
            atexit.register(self._finish)
            threading.Thread(target=self._run, name="hits", daemon=True).start()

    def _run(self) -> None:
        while True:
            if not self._has_hits.wait(IDLE_SECONDS):
                connection.close()
                self._has_hits.wait()
            self._has_hits.clear()
            time.sleep(GATHER_SECONDS)
            close_old_connections()
            if not self.flush():
                time.sleep(RETRY_SECONDS)
                self._has_hits.set()

    def _finish(self) -> None:
        if not self.flush():
            self._dropped += len(self._hits)
        self._log_dropped()

    def _log_dropped(self) -> None:
        if self._dropped:
            log.error("hits dropped", extra={"data": {"count": self._dropped}})
            self._dropped = 0


def _record(hits: list[Hit]) -> None:
    """Record a batch. If it fails, record each hit separately, so that only the bad one is lost."""
    try:
        record_hits(hits)
    except (OperationalError, InterfaceError):
        raise
    except Exception:  # noqa: BLE001 - an exception would end the thread
        for hit in hits:
            _record_alone(hit)


def _record_alone(hit: Hit) -> None:
    try:
        record_hits([hit])
    except (OperationalError, InterfaceError):
        raise
    except Exception:
        log.exception("a hit could not be recorded")


recorder = HitRecorder()
