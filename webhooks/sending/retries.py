"""Retry schedule of webhook deliveries (docs/specification.md, Webhooks; docs/decisions/0036)."""

import random
from datetime import timedelta

from django.conf import settings

JITTER = 0.1
# The specification allows 24 hours; five minutes are reserved for attempts in flight.
WINDOW = timedelta(hours=23, minutes=55)
# The longest Retry-After that is honoured.
MAX_RETRY_AFTER = timedelta(hours=6)


def delay_after(attempt: int) -> timedelta | None:
    """Return the wait before the next attempt, or None when no attempt is left.

    attempt: attempts already made, from 1. The waits of WEBHOOK_RETRY_SECONDS are 5 s, 1, 5, 30 minutes, 2, 5, 8,
    8 hours, each ±10 %: nine attempts within 23 h 36 min.
    """
    waits: list[int] = settings.WEBHOOK_RETRY_SECONDS
    if attempt > len(waits):
        return None
    return timedelta(seconds=waits[attempt - 1] * random.uniform(1 - JITTER, 1 + JITTER))  # noqa: S311 - spreads load
