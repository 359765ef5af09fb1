"""Polling with a timeout."""

import time
from collections.abc import Callable


def wait_until(is_true: Callable[[], bool], *, seconds: float, interval_seconds: float = 0.02) -> bool:
    """Poll a condition; return whether it became true within the timeout."""
    deadline = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > deadline:
            return False
        time.sleep(interval_seconds)
    return True
