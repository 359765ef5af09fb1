"""Endpoint shares: the number of attempts in flight that each endpoint may have, and its part of a claim.

The pace of an endpoint doubles with every batch of quick attempts, whether they succeed or fail; a slow attempt
resets it to the minimum. Slow endpoints share half of a process's sessions, so the other half stays free however many
endpoints hang. Deliveries over the pace stay in the queue and use no attempt (docs/decisions/0035).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from uuid import UUID

SLOW_PACE = 2
FIRST_PACE = 4
FULL_PACE = 32
SLOW_SECONDS = 2.0
SLOW_SHARE = 0.5


@dataclass(frozen=True)
class EndpointShare:
    """An endpoint with ready deliveries. free_slots: attempts it may start in addition to those in flight."""

    webhook: UUID
    free_slots: int
    is_slow: bool


def limit_shares(endpoints: Iterable[EndpointShare], *, limit: int, slow_limit: int) -> list[EndpointShare]:
    """Return up to limit endpoints with free slots, in order; slow ones get at most slow_limit slots in total."""
    return list(islice(_with_free_slots(endpoints, slow_limit), limit))


def _with_free_slots(endpoints: Iterable[EndpointShare], slow_limit: int) -> Iterable[EndpointShare]:
    for endpoint in endpoints:
        free_slots = min(endpoint.free_slots, slow_limit) if endpoint.is_slow else endpoint.free_slots
        if free_slots > 0:
            slow_limit -= free_slots if endpoint.is_slow else 0
            yield replace(endpoint, free_slots=free_slots)


def allocate(endpoints: Sequence[EndpointShare], *, limit: int) -> dict[UUID, int]:
    """Divide limit equally among at most limit endpoints; slots one endpoint cannot use go to the others."""
    shares: dict[UUID, int] = {}
    for index, endpoint in enumerate(sorted(endpoints, key=lambda endpoint: endpoint.free_slots)):
        share = min(endpoint.free_slots, -(-limit // (len(endpoints) - index)))
        shares[endpoint.webhook] = share
        limit -= share
    return shares
