"""When a delivery is tried again (CONTRACT section 6)."""

import random
from datetime import timedelta

from django.conf import settings

JITTER = 0.1
# The service document allows 24 hours; five minutes of it are kept for what is under way.
WINDOW = timedelta(hours=23, minutes=55)
# What a receiver may ask for by Retry-After.
LONGEST_ASKED = timedelta(hours=6)


def delay_after(attempt: int) -> timedelta | None:
    """Return the wait before the next attempt, None when there is none left.

    attempt: attempts already made, from 1. 5 s, 1, 5, 30 minutes, 2, 5, 8, 8 hours, each ±10 %, by
    WEBHOOK_RETRY_SECONDS: nine attempts within 23 h 36 min.
    """
    waits: list[int] = settings.WEBHOOK_RETRY_SECONDS
    if attempt > len(waits):
        return None
    return timedelta(seconds=waits[attempt - 1] * random.uniform(1 - JITTER, 1 + JITTER))  # noqa: S311 - spreads load
