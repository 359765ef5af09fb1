"""Leases as the network loop checks them, by this machine's boot clock and never by the wall clock."""

import time

from django.conf import settings

LEASE_SECONDS: int = settings.LEASE_SECONDS
RENEW_EVERY_SECONDS = LEASE_SECONDS / 4
# Time allowed between the check of a lease and the last byte sent under it.
MARGIN_SECONDS = LEASE_SECONDS / 6

# The boot clock advances while a machine sleeps; the monotonic clock is the fallback where it is missing.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boot_seconds() -> float:
    return time.clock_gettime(_CLOCK)


class Lease:
    """The lease of one job; the queue processor renews it. Times are boot-clock seconds."""

    def __init__(self, claimed_at: float) -> None:
        self.renewed_at = claimed_at

    def is_valid(self) -> bool:
        """Return whether no other worker can have claimed the job yet."""
        return boot_seconds() - self.renewed_at < LEASE_SECONDS - MARGIN_SECONDS
