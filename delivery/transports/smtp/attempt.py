"""One attempt at one message: a kept connection if there is one, else the hosts one after another."""

from collections.abc import AsyncIterator
from dataclasses import replace

from delivery.bounces.replies import DeliveryOutcome, DeliveryStatus
from delivery.message.delivery_request import DeliveryRequest
from delivery.transports.destinations import Destination
from delivery.transports.interface import Lease
from delivery.transports.smtp.errors import SmtpError
from delivery.transports.smtp.server import Server
from delivery.transports.smtp.session import Receipt, Session
from delivery.transports.smtp.session_factory import SessionFactory


class Attempt:
    """Composes the message once, when a connection stands, and ends with an outcome.

    on_acceptance: what a 250 to the final dot means.
    """

    def __init__(
        self, consignment: DeliveryRequest, *, lease: Lease, opener: SessionFactory, on_acceptance: DeliveryStatus
    ) -> None:
        self._consignment = consignment
        self._lease = lease
        self._on_acceptance = on_acceptance
        self._opener = opener
        self._deadline = opener.deadline()
        self._message = b""

    async def run(self, lane: Destination, servers: AsyncIterator[Server]) -> DeliveryOutcome:
        """Return the outcome. servers: those to try, as they are found; at least one.

        Raises LeaseLost, and what looking for servers raises.
        """
        try:
            return await self._try(lane, servers)
        except SmtpError as setback:
            (lane.failed if setback.is_of_the_connection else lane.moved)()
            return setback.outcome()

    async def _try(self, lane: Destination, servers: AsyncIterator[Server]) -> DeliveryOutcome:
        last: SmtpError | None = None
        while session := lane.take():
            try:
                return await self._send(lane, session)
            except SmtpError as setback:
                # Closed by the host between two messages: that says nothing of this one.
                if not setback.is_stale:
                    raise
        async for server in servers:
            try:
                return await self._send(lane, await self._opener.open(server, deadline=self._deadline))
            except SmtpError as setback:
                if not setback.may_try_next_host:
                    raise
                last = setback
        assert last
        raise last

    async def _send(self, lane: Destination, session: Session) -> DeliveryOutcome:
        try:
            self._message = self._message or self._consignment.message()
            receipt = await session.send(
                self._consignment.envelope, self._message, lease=self._lease, deadline=self._deadline
            )
        finally:
            lane.give_back(session)
        lane.moved()
        return self._accepted(receipt)

    def _accepted(self, receipt: Receipt) -> DeliveryOutcome:
        outcome = DeliveryOutcome(self._on_acceptance, receipt.reply)
        asked = self._on_acceptance is DeliveryStatus.SENT and receipt.dsn_requested
        return replace(outcome, success_dsn_requested=True) if asked else outcome
