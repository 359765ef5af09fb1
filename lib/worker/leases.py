"""A lease as the network loop sees it: a moment of this machine's boot clock, never of the wall clock."""

import time

from django.conf import settings

LEASE_SECONDS: int = settings.LEASE_SECONDS
RENEW_EVERY_SECONDS = LEASE_SECONDS / 4
# What may pass between the check and the last byte.
MARGIN_SECONDS = LEASE_SECONDS / 6

# The boot clock goes on while a machine sleeps; where there is none, the monotonic clock must do.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boot_seconds() -> float:
    return time.clock_gettime(_CLOCK)


class Lease:
    """Says whether a claim is surely still ours; the draining thread renews it."""

    def __init__(self, claimed_at: float) -> None:
        self.renewed_at = claimed_at

    def is_held(self) -> bool:
        return boot_seconds() - self.renewed_at < LEASE_SECONDS - MARGIN_SECONDS
