"""One attempt at one message: a kept connection if there is one, else the hosts one after another."""

from collections.abc import AsyncIterator
from dataclasses import replace

from delivery.bounces.replies import Outcome, Verdict
from delivery.message.delivery_request import Consignment
from delivery.transports.destinations import Lane
from delivery.transports.interface import Lease
from delivery.transports.smtp.errors import Setback
from delivery.transports.smtp.server import Server
from delivery.transports.smtp.session import Receipt, Session
from delivery.transports.smtp.session_factory import Opener


class Attempt:
    """Composes the message once, when a connection stands, and ends with an outcome.

    on_acceptance: what a 250 to the final dot means.
    """

    def __init__(self, consignment: Consignment, *, lease: Lease, opener: Opener, on_acceptance: Verdict) -> None:
        self._consignment = consignment
        self._lease = lease
        self._on_acceptance = on_acceptance
        self._opener = opener
        self._deadline = opener.deadline()
        self._message = b""

    async def run(self, lane: Lane, servers: AsyncIterator[Server]) -> Outcome:
        """Return the outcome. servers: those to try, as they are found; at least one.

        Raises LeaseLost, and what looking for servers raises.
        """
        try:
            return await self._try(lane, servers)
        except Setback as setback:
            (lane.failed if setback.is_of_the_connection else lane.moved)()
            return setback.outcome()

    async def _try(self, lane: Lane, servers: AsyncIterator[Server]) -> Outcome:
        last: Setback | None = None
        while session := lane.take():
            try:
                return await self._send(lane, session)
            except Setback as setback:
                # Closed by the host between two messages: that says nothing of this one.
                if not setback.is_stale:
                    raise
        async for server in servers:
            try:
                return await self._send(lane, await self._opener.open(server, deadline=self._deadline))
            except Setback as setback:
                if not setback.may_try_next_host:
                    raise
                last = setback
        assert last
        raise last

    async def _send(self, lane: Lane, session: Session) -> Outcome:
        try:
            self._message = self._message or self._consignment.message()
            receipt = await session.send(
                self._consignment.envelope, self._message, lease=self._lease, deadline=self._deadline
            )
        finally:
            lane.give_back(session)
        lane.moved()
        return self._accepted(receipt)

    def _accepted(self, receipt: Receipt) -> Outcome:
        outcome = Outcome(self._on_acceptance, receipt.reply)
        asked = self._on_acceptance is Verdict.SENT and receipt.dsn_requested
        return replace(outcome, success_dsn_requested=True) if asked else outcome
