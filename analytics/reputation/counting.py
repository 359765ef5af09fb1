"""Reputation counters of a workspace: sent, bounced and complained recipients (docs/decisions/0065).

Each recipient counts in the hour in which its message was sent, even if the bounce or complaint arrives days later.
Simulator recipients are not counted: their bounces are not real, and their deliveries would hide real bounces. Their
complaints have a counter of their own, since statistics show them like all other simulated events.
"""

from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from django.conf import settings

from core.counters import counters
from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, SuppressOn
from core.delivery.transports.simulator import is_simulated

# Complaints of the simulator's recipients.
SIMULATED_COMPLAINED = "simulated.complained"


class ReputationCounter(StrEnum):
    """Counters of recipients.

    SENT: accepted by a host or refused for the address.
    BOUNCED: refused for the address.
    COMPLAINED: reported.
    """

    SENT = "rated.sent"
    BOUNCED = "rated.bounced"
    COMPLAINED = "rated.complained"


def classify_outcome(outcome: DeliveryOutcome) -> Iterator[ReputationCounter]:
    """Yield the counters of a delivery attempt; none if the host refused the sender or the content.

    Such a refusal may be the operator's fault.
    """
    is_bad_address = is_address_refusal(outcome.reason) and outcome.suppresses(SuppressOn.RECIPIENT_FAULT)
    if is_bad_address or outcome.status in {DeliveryStatus.SENT, DeliveryStatus.DELIVERED}:
        yield ReputationCounter.SENT
    if is_bad_address:
        yield ReputationCounter.BOUNCED


def is_address_refusal(reason: str) -> bool:
    """Return whether a refusal is about the address. One without any text may be about the sender."""
    return reason != FailureReason.REJECTED


def reputation_change(
    counter: ReputationCounter, *, workspace_id: str, address: str, sent_at: datetime, slices: tuple[UUID, ...]
) -> Iterator[counters.CounterChange]:
    """Yield an increment of the counter; if the address belongs to the simulator, only for a complaint."""
    if not is_simulated(address, domain=settings.SIMULATOR_DOMAIN):
        yield counters.CounterKey(workspace_id, sent_at, counter.value, slices), 1
    elif counter is ReputationCounter.COMPLAINED:
        yield counters.CounterKey(workspace_id, sent_at, SIMULATED_COMPLAINED, slices), 1
