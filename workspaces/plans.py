"""Plans and their limits (docs/specification.md, Plans and quota)."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True)
class Plan:
    """Limits of a plan; None is unlimited."""

    name: str
    emails_per_month: int | None
    domains: int | None
    retention: timedelta
    # Bytes of received email, with RECEIVING_STORAGE=0.
    storage_bytes: int | None = None


PLANS = {
    plan.name: plan
    for plan in (
        Plan("free", emails_per_month=500, domains=1, retention=timedelta(days=7), storage_bytes=100 * 10**6),
        Plan("pro", emails_per_month=50_000, domains=10, retention=timedelta(days=90), storage_bytes=5 * 10**9),
        Plan("enterprise", emails_per_month=None, domains=None, retention=timedelta(days=365)),
    )
}

MAX_KEYS = 100
