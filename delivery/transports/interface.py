"""Transport interface: the protocol that every transport implements."""

from typing import Protocol

from delivery.bounces.replies import DeliveryOutcome
from delivery.message.compose import OutgoingMessage


class LeaseLost(Exception):
    """Raised before the body's last write when another worker may have claimed the recipient."""


class LeaseCheck(Protocol):
    """The part of a lease that transports use."""

    def is_valid(self) -> bool: ...


class Transport(Protocol):
    """Delivers messages. One instance lives as long as the process, in its network loop."""

    async def deliver(self, message: OutgoingMessage, *, lease: LeaseCheck) -> DeliveryOutcome:
        """Deliver one message. Every failure is an outcome; only LeaseLost is raised."""

    @property
    def trouble(self) -> str | None:
        """Return a message for the operator if no mail can be sent, else None. Shown by `/readyz`."""
