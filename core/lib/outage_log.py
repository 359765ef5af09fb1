"""Log records of an outage: at its start, once a minute with the number of failures, and at its end.

A failure per message or per second would fill the disk while a database is away (docs/decisions/0171).
"""

import logging
import threading
import time
from collections import Counter

INTERVAL_SECONDS = 60.0


class OutageLog:
    """The state of one dependency, such as the database.

    down, up: the messages of failures, with a level, and of the end.
    Failures are counted by cause, the class of the first error: a server that stops, and one that is gone. An outage
    that begins within a minute of a line about its cause is not logged before the next one; nor is its end.
    """

    def __init__(self, log: logging.Logger, *, down: str, up: str, level: int = logging.WARNING) -> None:
        self._log = log
        self._level = level
        self._down, self._up = down, up
        self._lock = threading.Lock()
        self._failures: Counter[str] = Counter()
        self._logged_at: dict[str, float] = {}
        self._is_logged = False

    def record_failure(self, error: BaseException, *, has_traceback: bool = False) -> None:
        """Log a failure if it is the first one with its cause, or the first one after a minute.

        has_traceback: the first one is logged with it.
        """
        cause = type(error.__cause__ or error).__name__
        with self._lock:
            self._failures[cause] += 1
            now = time.monotonic()
            if now - self._logged_at.get(cause, -INTERVAL_SECONDS) < INTERVAL_SECONDS:
                return
            self._logged_at[cause], self._is_logged = now, True
            failures = self._failures[cause]
        data = {"error": f"{type(error).__name__}: {error}".partition("\n")[0], "failures": failures}
        traceback = error if failures == 1 and has_traceback else None
        self._log.log(self._level, self._down, exc_info=traceback, extra={"data": data})

    def record_success(self) -> None:
        """Log the end of an outage, if there was one."""
        # Read without the lock: this is called for each success.
        if not self._is_logged:
            return
        with self._lock:
            failures, was_logged = self._failures.total(), self._is_logged
            self._failures.clear()
            self._is_logged = False
        if was_logged:
            self._log.warning(self._up, extra={"data": {"failures": failures}})

    def clear(self) -> None:
        """Forget an outage."""
        self._failures.clear()
        self._logged_at.clear()
        self._is_logged = False


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
