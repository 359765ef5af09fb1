"""Recipients that behave as their name says, whatever the transport: for trying, and for tests.

`delivered@ bounced@ failed@ deferred@ complained@ opened@ clicked@ unsubscribed@` of the simulator's domain, each
also with a +label. Nothing leaves the process; what happens depends on the address and the attempt alone.
"""

from dataclasses import dataclass, replace

from delivery.bounces.reasons import Reason
from delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply
from delivery.message.delivery_request import DeliveryRequest
from delivery.transports.interface import Lease, LeaseLost, Transport

DEFERRED_ATTEMPTS = 2

DELIVERED = DeliveryOutcome(DeliveryStatus.DELIVERED, Reply(250, "2.0.0 Delivered by the simulator"))
BOUNCED = DeliveryOutcome(
    DeliveryStatus.BOUNCED,
    Reply(550, "5.1.1 The simulator knows no such user"),
    Reason.UNKNOWN_USER,
    is_recipient_fault=True,
)
LATER = DeliveryOutcome(
    DeliveryStatus.DEFERRED, Reply(451, "4.7.1 The simulator takes this on the third attempt"), Reason.GREYLISTED
)
FAILED = DeliveryOutcome(DeliveryStatus.FAILED, Reply(0, "The simulator let this fail"), Reason.EXPIRED)
STRANGER = DeliveryOutcome(
    DeliveryStatus.BOUNCED,
    Reply(
        550, "5.1.1 The simulator knows delivered, bounced, failed, deferred, complained, opened, clicked, unsubscribed"
    ),
    Reason.UNKNOWN_USER,
    is_recipient_fault=True,
)


@dataclass(frozen=True)
class _Life:
    """What the first attempts get, and what the last one does."""

    outcome: DeliveryOutcome
    before: DeliveryOutcome | None = None


LIVES = {
    "delivered": _Life(DELIVERED),
    "bounced": _Life(BOUNCED),
    "failed": _Life(FAILED),
    "deferred": _Life(DELIVERED, before=LATER),
    "complained": _Life(replace(DELIVERED, then=("complained",))),
    "opened": _Life(replace(DELIVERED, then=("opened",))),
    "clicked": _Life(replace(DELIVERED, then=("opened", "clicked"))),
    "unsubscribed": _Life(replace(DELIVERED, then=("unsubscribed",))),
}


class SimulatorTransport:
    """Answers for one domain, and hands everything else to the transport behind it."""

    def __init__(self, transport: Transport, *, domain: str) -> None:
        self._transport = transport
        self._domain = domain.lower()

    @property
    def trouble(self) -> str | None:
        return self._transport.trouble

    async def deliver(self, consignment: DeliveryRequest, *, lease: Lease) -> DeliveryOutcome:
        """Hand one message over, or play its recipient's part."""
        local, _, domain = consignment.envelope.recipient.lower().rpartition("@")
        if domain != self._domain:
            return await self._transport.deliver(consignment, lease=lease)
        # What cannot be composed fails here as it would on the wire.
        consignment.message()
        if not lease.is_held():
            raise LeaseLost
        return _play(local, consignment.history.attempt)


def _play(local: str, attempt: int) -> DeliveryOutcome:
    name, label, _ = local.partition("+")
    life = LIVES.get(name, _Life(STRANGER))
    outcome = life.before if life.before and attempt <= DEFERRED_ATTEMPTS else life.outcome
    # Bare addresses are everybody's, and are used again and again.
    return outcome if label else replace(outcome, never_suppresses=True)
