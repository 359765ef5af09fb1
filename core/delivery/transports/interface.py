"""Transport interface: the protocol that every transport implements."""

from typing import Protocol

from core.delivery.bounces.replies import DeliveryOutcome
from core.delivery.message.compose import OutgoingMessage


class LeaseLost(Exception):
    """Raised before a message begins, or before its last write, when another worker may have claimed the recipient.

    Also if the email may not be sent any more: its address was suppressed, or it has expired.
    """


class LeaseCheck(Protocol):
    """The part of a lease that transports use."""

    def is_valid(self) -> bool: ...


def require_valid(lease: LeaseCheck) -> None:
    """Raise LeaseLost unless the lease is valid."""
    if not lease.is_valid():
        raise LeaseLost


class SendPermit(LeaseCheck, Protocol):
    """The lease of a message, with the record of the transport that may get it."""

    async def assign(self, transport: str) -> bool:
        """Store which transport will get the last block of the message; return False if its daily limit is reached.

        Only the router of several transports asks. Raises LeaseLost.
        """


class Transport(Protocol):
    """Delivers messages. One instance lives as long as the process, in its network loop."""

    async def deliver(self, message: OutgoingMessage, *, lease: SendPermit) -> DeliveryOutcome:
        """Deliver one message. Every failure is an outcome; only LeaseLost is raised."""

    @property
    def trouble(self) -> str | None:
        """Return a message for the operator if no mail can be sent, else None. Shown by `/readyz`."""

    def end_sessions(self) -> None:
        """Close idle sessions; the transport can be used again afterwards."""
