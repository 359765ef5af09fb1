"""Retry rules and delays."""

import random
from typing import Optional

from postrider_client.base_errors import ApiError, ConnectionFailed, PostriderError

FIRST_WAIT_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 8.0
# A longer Retry-After is raised to the caller instead.
LONGEST_RETRY_AFTER_SECONDS = 60


def is_transient(error: PostriderError) -> bool:
    """Return whether a retry may succeed."""
    if not isinstance(error, ApiError):
        return isinstance(error, ConnectionFailed)
    is_transient_status = error.status == 408 or error.status >= 500
    return is_transient_status or error.code == "idempotency_in_progress" or was_not_processed(error)


def was_not_processed(error: PostriderError) -> bool:
    """Return whether the server certainly did not process the request, so that any request may be retried.

    That is a 429 with Retry-After, also of a proxy. An exceeded quota has none.
    """
    if not isinstance(error, ApiError) or error.status != 429:
        return False
    return error.code == "rate_limit_exceeded" or error.retry_after_seconds is not None


def seconds_after(attempt: int, *, error: PostriderError) -> Optional[float]:
    """Return the wait before the next attempt, or None if Retry-After is too long.

    attempt: attempts already made, from 1. The wait is random, between half and all of 0.5, 1, 2, 4, 8, 8 … seconds,
    so that clients that failed together do not retry together.
    """
    longest = min(FIRST_WAIT_SECONDS * 2 ** (attempt - 1), LONGEST_WAIT_SECONDS)
    backoff: float = longest * random.uniform(0.5, 1)  # noqa: S311 - spreads load
    retry_after = error.retry_after_seconds if isinstance(error, ApiError) else None
    if retry_after is None:
        return backoff
    return retry_after + backoff / 10 if retry_after <= LONGEST_RETRY_AFTER_SECONDS else None
