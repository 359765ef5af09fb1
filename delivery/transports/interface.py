"""What every transport promises."""

from typing import Protocol

from delivery.bounces.replies import DeliveryOutcome
from delivery.message.delivery_request import DeliveryRequest


class LeaseLost(Exception):
    """Raised before the body's last write when the claim may belong to another worker by now."""


class Lease(Protocol):
    def is_held(self) -> bool: ...


class Transport(Protocol):
    """Takes a consignment to its outcome; lives as long as the process, in its network loop."""

    async def deliver(self, consignment: DeliveryRequest, *, lease: Lease) -> DeliveryOutcome:
        """Hand one message over. Every failure is an outcome; only LeaseLost is raised."""

    @property
    def trouble(self) -> str | None:
        """Return why nothing can leave, as a sentence for the operator, or None. For `/readyz`."""
