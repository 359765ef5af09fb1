"""Buffer of rows that are written in batches: requests do not wait for the database.

There is one bounded buffer per process and kind of row. A thread empties it soon after the first row arrives, and
process exit empties it as well. While the database is unreachable, rows are kept; those beyond the capacity are dropped
and counted. See docs/decisions/0026.
"""

import atexit
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from django.db import InterfaceError, OperationalError, close_old_connections, connection

from core.lib.worker.database_outage import database_outage

T = TypeVar("T")

RETRY_SECONDS = 2.0
# Idle time after which the thread closes its database connection.
IDLE_SECONDS = 5.0


class WriteBuffer(Generic[T]):
    """A bounded buffer and the thread that writes its rows.

    name: the name of the rows in log lines, such as hits.
    gather_seconds: the wait for further rows of a batch.
    write: writes a batch; raises OperationalError or InterfaceError while the database is unreachable, and nothing
    else.
    """

    def __init__(
        self,
        name: str,
        write: Callable[[list[T]], None],
        *,
        log: logging.Logger,
        capacity: int,
        batch_size: int,
        gather_seconds: float,
    ) -> None:
        self._name, self._write, self._log = name, write, log
        self._capacity, self._batch_size, self._gather_seconds = capacity, batch_size, gather_seconds
        self._rows: deque[T] = deque()
        self._has_rows = threading.Event()
        self._flush_lock = threading.Lock()
        self._process = 0
        self._dropped = 0

    def add(self, row: T) -> None:
        """Add a row to the next batch, without blocking."""
        if len(self._rows) >= self._capacity:
            self.drop()
            return
        self._rows.append(row)
        self._start()
        self._has_rows.set()

    def drop(self, *, count: int = 1, reason: str = "buffer") -> None:
        """Count rows that are not written. reason: buffer (full), end (of the process), or one of a subclass."""
        self._dropped += count

    def flush(self) -> bool:
        """Write all buffered rows; return whether the database was reachable."""
        with self._flush_lock:
            self._log_dropped()
            while batch := self._take_batch():
                try:
                    self._write(batch)
                except (OperationalError, InterfaceError) as error:
                    self._rows.extendleft(reversed(batch))
                    database_outage.record_failure(error)
                    return False
                database_outage.record_success()
        return True

    def clear(self) -> None:
        self._rows.clear()

    def _take_batch(self) -> list[T]:
        return [self._rows.popleft() for _ in range(min(self._batch_size, len(self._rows)))]

    def _start(self) -> None:
        """Start the thread once per process: gunicorn forks after loading, and threads do not survive a fork."""
        if self._process != os.getpid():
            self._process = os.getpid()
            atexit.register(self._finish)
            threading.Thread(target=self._run, name=self._name, daemon=True).start()

    def _run(self) -> None:
        while True:
            if not self._has_rows.wait(IDLE_SECONDS):
                connection.close()
                self._has_rows.wait()
            self._has_rows.clear()
            time.sleep(self._gather_seconds)
            close_old_connections()
            if not self.flush():
                time.sleep(RETRY_SECONDS)
                self._has_rows.set()

    def _finish(self) -> None:
        if not self.flush():
            self.drop(count=len(self._rows), reason="end")
        self._log_dropped()

    def _log_dropped(self) -> None:
        if self._dropped:
            self._log.error("%s dropped", self._name, extra={"data": {"count": self._dropped}})
            self._dropped = 0
