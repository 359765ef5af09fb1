"""Retry delays after a deferral (docs/specification.md, Retries)."""

import random
from datetime import timedelta

from django.conf import settings

JITTER = 0.15


def delay_after(attempt: int) -> timedelta:
    """Return the wait before the next attempt.

    attempt: attempts already made, from 1. 1, 3, 5, 10, 20, 40 minutes, 1, 2, 3, 4 hours, then every
    4 hours, each ±15 %, by DELIVERY_RETRY_SECONDS.
    """
    waits: list[int] = settings.DELIVERY_RETRY_SECONDS
    return with_jitter(timedelta(seconds=waits[min(attempt, len(waits)) - 1]))


def with_jitter(wait: timedelta) -> timedelta:
    """Return a wait ±15 %."""
    return wait * random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311 - spreads load, not a secret


def max_age() -> timedelta:
    """Return the maximum age of a recipient, counted from its first due time; an older one is not retried."""
    return timedelta(seconds=settings.DELIVERY_MAX_AGE)
