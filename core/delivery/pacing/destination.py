"""Destinations of the direct transport: the mail hosts of a domain, within the pace of their receiver."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus
from core.delivery.bounces.signals import NARROW, OTHER_CAUSES, Signal
from core.delivery.pacing.shares import PaceShare
from core.delivery.transports.circuit_breaker import Clock
from core.delivery.transports.destinations import Destination, DestinationLimits
from core.delivery.transports.smtp.session import Session


class PacedDestination(Destination):
    """A destination whose connections are those of a pair. Its breaker stays its own: another host may work."""

    def __init__(self, limits: DestinationLimits, share: PaceShare, *, clock: Clock = time.monotonic) -> None:
        super().__init__(limits, clock=clock)
        self._share = share
        self.receiver = share.receiver.key

    @asynccontextmanager
    async def slot(self, *, released_for: int = 0, is_taken_over: bool = False) -> AsyncIterator[None]:
        """Occupy a connection of the pair. Raises DestinationBusy."""
        self._refuse_broken()
        await self._share.enter(self, released_for=released_for, is_taken_over=is_taken_over)
        self._refuse_broken()
        self._in_use += 1
        try:
            with self._share.using(), self.breaker.call():
                yield
        finally:
            self._in_use -= 1

    def return_session(self, session: Session) -> None:
        super().return_session(session)
        self._share.owners.add(self)

    def record_acceptance(self, *, began_at: float = 0.0) -> None:
        self._record_reply()
        self._share.record_acceptance(began_at)

    def record_refusal(self, outcome: DeliveryOutcome) -> None:
        """Record a refusal that does not ask for less; many together do, whatever their words are."""
        self._record_reply()
        if outcome.status is DeliveryStatus.DEFERRED and outcome.reason not in OTHER_CAUSES:
            self._share.record_deferral()

    def record_signal(self, signal: Signal, outcome: DeliveryOutcome, *, began_at: float = 0.0) -> None:
        self._record_reply()
        self._share.record_signal(signal, outcome, began_at=began_at)

    def narrow(self, outcome: DeliveryOutcome, *, began_at: float) -> None:
        self._share.record_signal(NARROW, outcome, began_at=began_at)

    def record_failure(self) -> None:
        self.breaker.record_failure()
