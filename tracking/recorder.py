"""Hits wait here for a moment and are written down together; the redirect never waits for them.

One per process, bounded. A thread empties it every 200 ms; what waits at the end of the process is written then.
While the database is out of reach hits are kept, and when there are too many, counted and dropped.
See docs/decisions/0026.
"""

import atexit
import logging
import os
import threading
import time
from collections import deque

from django.db import InterfaceError, OperationalError, close_old_connections, connection

from emails.events.opens_and_clicks import Hit, record_hits

CAPACITY = 10_000
BATCH = 100
GATHER_SECONDS = 0.2
RETRY_SECONDS = 2.0
# After which an idle thread gives its database connection back.
IDLE_SECONDS = 5.0

log = logging.getLogger("postrider.tracking")


class Recorder:
    def __init__(self) -> None:
        self._hits: deque[Hit] = deque()
        self._stirred = threading.Event()
        self._flushing = threading.Lock()
        self._process = 0
        self._dropped = 0

    def add(self, hit: Hit) -> None:
        """Keep a hit for the next batch; returns at once."""
        if len(self._hits) >= CAPACITY:
            self._dropped += 1
            return
        self._hits.append(hit)
        self._start()
        self._stirred.set()

    def flush(self) -> bool:
        """Write down all that waits; return whether the database could be reached."""
        with self._flushing:
            self._tell_dropped()
            while batch := self._taken():
                try:
                    _record(batch)
                except (OperationalError, InterfaceError) as error:
                    self._hits.extendleft(reversed(batch))
                    log.warning("hits wait", extra={"data": {"count": len(self._hits), "error": type(error).__name__}})
                    return False
        return True

    def _taken(self) -> list[Hit]:
        return [self._hits.popleft() for _ in range(min(BATCH, len(self._hits)))]

    def _start(self) -> None:
        """Start the thread; gunicorn forks after loading, and a child has none of its parent's threads."""
        if self._process != os.getpid():
            self._process = os.getpid()
            atexit.register(self._finish)
            threading.Thread(target=self._run, name="hits", daemon=True).start()

    def _run(self) -> None:
        while True:
            if not self._stirred.wait(IDLE_SECONDS):
                connection.close()
                self._stirred.wait()
            self._stirred.clear()
            time.sleep(GATHER_SECONDS)
            close_old_connections()
            if not self.flush():
                time.sleep(RETRY_SECONDS)
                self._stirred.set()

    def _finish(self) -> None:
        if not self.flush():
            self._dropped += len(self._hits)
        self._tell_dropped()

    def _tell_dropped(self) -> None:
        if self._dropped:
            log.error("hits dropped", extra={"data": {"count": self._dropped}})
            self._dropped = 0


def _record(hits: list[Hit]) -> None:
    """Record a batch; where it is refused, one by one, so that a bad one costs itself alone."""
    try:
        record_hits(hits)
    except (OperationalError, InterfaceError):
        raise
    except Exception:  # noqa: BLE001 - nobody else would start the thread again
        for hit in hits:
            _record_alone(hit)


def _record_alone(hit: Hit) -> None:
    try:
        record_hits([hit])
    except (OperationalError, InterfaceError):
        raise
    except Exception:
        log.exception("a hit was refused")


recorder = Recorder()
