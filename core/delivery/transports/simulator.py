"""Simulator: recipients whose address decides their outcome, with any transport; for trials and tests.

The recipients are those of the simulator's domain, and all recipients of test emails (docs/decisions/0109).
The local parts of the simulator's domain are `delivered@ bounced@ failed@ deferred@ complained@ opened@ clicked@
unsubscribed@`, each also with a +label. No mail leaves the process; the outcome depends only on the address and the
attempt number.
"""

from dataclasses import dataclass, replace

from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply
from core.delivery.message.compose import OutgoingMessage
from core.delivery.transports.composing import compose_message
from core.delivery.transports.interface import LeaseLost, SendPermit, Transport

DEFERRED_ATTEMPTS = 2

DELIVERED = DeliveryOutcome(DeliveryStatus.DELIVERED, Reply(250, "2.0.0 Delivered by the simulator"))
BOUNCED = DeliveryOutcome(
    DeliveryStatus.BOUNCED,
    Reply(550, "5.1.1 The simulator knows no such user"),
    FailureReason.UNKNOWN_USER,
    is_recipient_fault=True,
)
DEFERRED = DeliveryOutcome(
    DeliveryStatus.DEFERRED,
    Reply(451, "4.7.1 The simulator accepts this address on the third attempt"),
    FailureReason.GREYLISTED,
)
FAILED = DeliveryOutcome(DeliveryStatus.FAILED, Reply(0, "The simulator failed this delivery"), FailureReason.EXPIRED)
UNKNOWN_RECIPIENT = DeliveryOutcome(
    DeliveryStatus.BOUNCED,
    Reply(
        550, "5.1.1 The simulator knows delivered, bounced, failed, deferred, complained, opened, clicked, unsubscribed"
    ),
    FailureReason.UNKNOWN_USER,
    is_recipient_fault=True,
)


@dataclass(frozen=True)
class _Behavior:
    """The outcome of a simulated recipient. first: that of the first DEFERRED_ATTEMPTS attempts, if different."""

    outcome: DeliveryOutcome
    first: DeliveryOutcome | None = None


BEHAVIORS = {
    "delivered": _Behavior(DELIVERED),
    "bounced": _Behavior(BOUNCED),
    "failed": _Behavior(FAILED),
    "deferred": _Behavior(DELIVERED, first=DEFERRED),
    "complained": _Behavior(replace(DELIVERED, simulated_events=("complained",))),
    "opened": _Behavior(replace(DELIVERED, simulated_events=("opened",))),
    "clicked": _Behavior(replace(DELIVERED, simulated_events=("opened", "clicked"))),
    "unsubscribed": _Behavior(replace(DELIVERED, simulated_events=("unsubscribed",))),
}


class SimulatorTransport:
    """Answers for the simulator's domain; passes every other message to the wrapped transport."""

    def __init__(self, transport: Transport, *, domain: str) -> None:
        self.transport = transport
        self._domain = domain.lower()

    @property
    def trouble(self) -> str | None:
        return self.transport.trouble

    def end_sessions(self) -> None:
        self.transport.end_sessions()

    async def deliver(self, message: OutgoingMessage, *, lease: SendPermit) -> DeliveryOutcome:
        """Deliver one message, or simulate its recipient."""
        local, _, domain = message.recipient.lower().rpartition("@")
        if domain != self._domain and not message.is_test:
            return await self.transport.deliver(message, lease=lease)
        # A message that cannot be composed fails here as with a real transport.
        await compose_message(message)
        if not lease.is_valid():
            raise LeaseLost
        unknown = UNKNOWN_RECIPIENT if domain == self._domain else DELIVERED
        outcome = _simulate(local, message.attempt, unknown=unknown)
        return replace(outcome, never_suppresses=True) if message.is_test else outcome


def _simulate(local: str, attempt: int, *, unknown: DeliveryOutcome) -> DeliveryOutcome:
    """Return the outcome of an attempt. unknown: that of a local part without a behavior."""
    name, label, _ = local.partition("+")
    behavior = BEHAVIORS.get(name, _Behavior(unknown))
    outcome = behavior.first if behavior.first and attempt <= DEFERRED_ATTEMPTS else behavior.outcome
    # Addresses without a label are shared by everyone and reused, so they are never suppressed.
    return outcome if label else replace(outcome, never_suppresses=True)
