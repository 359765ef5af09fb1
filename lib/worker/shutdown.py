"""One flag for the whole process: once it is set no drain claims, and what is under way gets a grace."""

import threading
import time

GRACE_SECONDS = 50.0

_stopping = threading.Event()
_deadline = 0.0


def stop() -> None:
    """Begin to stop; calling it again changes nothing."""
    global _deadline  # noqa: PLW0603 - one stop a process
    if not _stopping.is_set():
        _deadline = time.monotonic() + GRACE_SECONDS
        _stopping.set()


def is_stopping() -> bool:
    return _stopping.is_set()


def wait(seconds: float) -> bool:
    """Sleep, at most until a stop begins; return whether it has."""
    return _stopping.wait(seconds)


def seconds_left() -> float:
    """Return what is left of the grace; the whole grace while nobody is stopping."""
    return max(_deadline - time.monotonic(), 0.0) if _stopping.is_set() else GRACE_SECONDS
