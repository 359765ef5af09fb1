"""Hand everything to one server: a relay, or the built-in inbox."""

import ssl
from collections.abc import AsyncIterator

from delivery.bounces.reasons import Reason
from delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, parked
from delivery.message.delivery_request import DeliveryRequest
from delivery.transports.circuit_breaker import Fuse
from delivery.transports.credentials import CredentialsCircuit
from delivery.transports.destinations import Destination, DestinationBusy, Limits
from delivery.transports.interface import Lease
from delivery.transports.smtp.attempt import Attempt
from delivery.transports.smtp.server import RFC_5321, Server, Timeouts
from delivery.transports.smtp.session_factory import SessionFactory
from delivery.transports.smtp.smtp_url import RelayUrl
from delivery.transports.smtp.tls import Tls

RELAY_LIMITS = Limits(connections=20)
INBOX_LIMITS = Limits(fuse=Fuse(first_seconds=1.0, longest_seconds=5.0))


class RelayTransport:
    """Delivers to one server. on_acceptance says what its 250 means: sent, or delivered too."""

    def __init__(
        self,
        url: RelayUrl,
        *,
        ehlo_name: str,
        on_acceptance: DeliveryStatus = DeliveryStatus.SENT,
        limits: Limits = RELAY_LIMITS,
        timeouts: Timeouts = RFC_5321,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self._server = Server(
            address=url.host,
            port=url.port,
            name=url.host,
            ehlo_name=ehlo_name,
            tls=url.tls,
            login=url.login,
            context=context,
            notify="SUCCESS,FAILURE,DELAY",
        )
        self._on_acceptance = on_acceptance
        self._opener = SessionFactory(timeouts)
        self._lane = Destination(limits)
        self._logins = CredentialsCircuit()

    @property
    def trouble(self) -> str | None:
        """Return what the operator must repair: the relay refuses the login."""
        return "The relay refuses the login of SMTP_URL." if self._logins.is_blown else None

    async def deliver(self, consignment: DeliveryRequest, *, lease: Lease) -> DeliveryOutcome:
        """Hand one message over. Every failure is an outcome; only LeaseLost is raised."""
        if self._logins.is_open:
            return parked(Reason.LOGIN_REFUSED, "The relay refuses the login.")
        try:
            async with self._lane.place():
                return await self._try(consignment, lease)
        except DestinationBusy as busy:
            return busy.outcome

    def close(self) -> None:
        """Close the kept connections."""
        self._lane.close()

    async def _try(self, consignment: DeliveryRequest, lease: Lease) -> DeliveryOutcome:
        attempt = Attempt(consignment, lease=lease, opener=self._opener, on_acceptance=self._on_acceptance)
        with self._logins.passage():
            outcome = await attempt.run(self._lane, self._servers())
        self._logins.note(outcome)
        return outcome

    async def _servers(self) -> AsyncIterator[Server]:
        yield self._server


def inbox_transport(*, port: int, ehlo_name: str) -> RelayTransport:
    """Return the transport of the embedded mode: real SMTP to the built-in inbox, which is the recipient's host."""
    url = RelayUrl("127.0.0.1", port, Tls.NONE)
    return RelayTransport(url, ehlo_name=ehlo_name, on_acceptance=DeliveryStatus.DELIVERED, limits=INBOX_LIMITS)
