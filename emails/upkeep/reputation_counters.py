"""Count what a workspace's reputation is made of (docs/decisions/0065).

Recipients, each in the hour in which the mail left: what is said of it days later counts there, too. Those of the
simulator count nowhere: they are no bad addresses, and many good ones among them would hide bad ones elsewhere.
"""

from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum

from django.conf import settings

from analytics import counters
from delivery.bounces.reasons import Reason
from delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, SuppressOn

Change = tuple[counters.CounterKey, int]


class Rated(StrEnum):
    """sent: taken by a host, or refused for the address. bounced: refused for it. complained: called spam."""

    SENT = "rated.sent"
    BOUNCED = "rated.bounced"
    COMPLAINED = "rated.complained"


def of_outcome(outcome: DeliveryOutcome) -> Iterator[Rated]:
    """Yield what a hand-over counts as: nothing where a host refused us or the content; that may be our own fault."""
    is_bad_address = blames_address(outcome.reason) and outcome.suppresses(SuppressOn.RECIPIENT_FAULT)
    if is_bad_address or outcome.verdict in {DeliveryStatus.SENT, DeliveryStatus.DELIVERED}:
        yield Rated.SENT
    if is_bad_address:
        yield Rated.BOUNCED


def blames_address(reason: str) -> bool:
    """Tell whether a refusal speaks of the address: one without any words may speak of ourselves."""
    return reason != Reason.REJECTED


def change(what: Rated, *, workspace_id: str, address: str, left_at: datetime) -> Iterator[Change]:
    """Yield one more of what, unless the address is the simulator's."""
    if not address.lower().endswith(f"@{settings.SIMULATOR_DOMAIN}"):
        yield counters.CounterKey(workspace_id, left_at, what.value), 1
