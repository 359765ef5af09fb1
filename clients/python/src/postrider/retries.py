"""When to try again, and after how long."""

import random
from typing import Optional

from postrider.errors import ApiError, ConnectionFailed, PostriderError

FIRST_WAIT_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 8.0
# A server that asks for more than this is not waited for: the caller knows better what to do with the time.
LONGEST_RETRY_AFTER_SECONDS = 60
TRANSIENT_CODES = frozenset({"rate_limit_exceeded", "idempotency_in_progress"})


def is_transient(error: PostriderError) -> bool:
    """Return whether what went wrong may go well a moment later."""
    if not isinstance(error, ApiError):
        return isinstance(error, ConnectionFailed)
    return error.status == 408 or error.status >= 500 or error.code in TRANSIENT_CODES


def did_nothing(error: PostriderError) -> bool:
    """Return whether the server certainly did nothing, so that even what must not happen twice may be repeated."""
    return isinstance(error, ApiError) and error.code == "rate_limit_exceeded"


def seconds_after(attempt: int, *, error: PostriderError) -> Optional[float]:
    """Return the wait before the next attempt, or None when the server asks for more patience than we have.

    attempt: attempts already made, from 1. Between half and the whole of 0.5, 1, 2, 4, 8, 8 … seconds, at random,
    so that clients that failed together do not come back together.
    """
    longest = min(FIRST_WAIT_SECONDS * 2 ** (attempt - 1), LONGEST_WAIT_SECONDS)
    backoff: float = longest * random.uniform(0.5, 1)  # noqa: S311 - it spreads load, it hides nothing
    asked = error.retry_after_seconds if isinstance(error, ApiError) else None
    if asked is None:
        return backoff
    return asked + backoff / 10 if asked <= LONGEST_RETRY_AFTER_SECONDS else None
