"""Wait for a fact, with a limit."""

import time
from collections.abc import Callable


def wait_until(is_true: Callable[[], bool], *, seconds: float, interval_seconds: float = 0.02) -> bool:
    """Return whether the fact became true in time."""
    deadline = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > deadline:
            return False
        time.sleep(interval_seconds)
    return True
