"""Log records of an outage: one at its start, one a minute with the number of failures, and one at its end.

A failure per message or per second would fill the disk while a database is away (docs/decisions/0171).
"""

import logging
import threading
import time

INTERVAL_SECONDS = 60.0


class OutageLog:
    """The state of one dependency, such as the database.

    down, up: the messages of failures, with a level, and of the end.
    """

    def __init__(self, log: logging.Logger, *, down: str, up: str, level: int = logging.WARNING) -> None:
        self._log = log
        self._level = level
        self._down, self._up = down, up
        self._lock = threading.Lock()
        self._failures = 0
        self._logged_at = 0.0

    def record_failure(self, error: Exception, *, has_traceback: bool = False) -> None:
        """Log a failure if it is the first one of an outage, or the first one after a minute.

        has_traceback: the first one is logged with it.
        """
        with self._lock:
            self._failures += 1
            is_first, now = self._failures == 1, time.monotonic()
            if not is_first and now - self._logged_at < INTERVAL_SECONDS:
                return
            self._logged_at = now
            text = f"{type(error).__name__}: {error}".partition("\n")[0]
            data = {"error": text, "failures": self._failures}
        traceback = error if is_first and has_traceback else None
        self._log.log(self._level, self._down, exc_info=traceback, extra={"data": data})

    def record_success(self) -> None:
        """Log the end of an outage, if there was one."""
        # Read without the lock: this is called for each success.
        if not self._failures:
            return
        with self._lock:
            failures, self._failures = self._failures, 0
        if failures:
            self._log.warning(self._up, extra={"data": {"failures": failures}})


class RepeatFilter(logging.Filter):
    """Drops records whose message without its arguments was logged in the last minute; for the loggers of libraries."""

    def __init__(self) -> None:
        super().__init__()
        self._logged_at: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        now = time.monotonic()
        if now - self._logged_at.get(record.msg, -INTERVAL_SECONDS) < INTERVAL_SECONDS:
            return False
        self._logged_at[record.msg] = now
        return True
