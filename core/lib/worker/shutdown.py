"""Shutdown of a worker process: queue processors stop claiming, and jobs in flight get a grace period."""

import threading
import time

GRACE_SECONDS = 50.0

_stopping = threading.Event()
_deadline = 0.0


def stop() -> None:
    """Begin the shutdown; further calls change nothing."""
    global _deadline  # noqa: PLW0603 - one shutdown per process
    if not _stopping.is_set():
        _deadline = time.monotonic() + GRACE_SECONDS
        _stopping.set()


def is_stopping() -> bool:
    return _stopping.is_set()


def wait_for_stop(seconds: float) -> bool:
    """Sleep until the shutdown begins, at most for the given time; return whether it has begun."""
    return _stopping.wait(seconds)


def grace_seconds_left() -> float:
    """Return the rest of the grace period; all of it before the shutdown begins."""
    return max(_deadline - time.monotonic(), 0.0) if _stopping.is_set() else GRACE_SECONDS
