"""Own receiver: messages to domains that this installation receives go to its own server, not to the addresses in DNS.

These addresses are refused as those of this machine, and may be private ones behind a load balancer
(docs/decisions/0233).
"""

from collections.abc import Awaitable, Callable

from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus
from core.delivery.message.compose import OutgoingMessage
from core.delivery.transports.interface import SendPermit, Transport
from core.delivery.transports.relay import INBOX_LIMITS, RelayTransport
from core.delivery.transports.smtp.smtp_url import RelayUrl
from core.delivery.transports.smtp.tls import TlsMode

IsReceived = Callable[[str], Awaitable[bool]]


class OwnReceiverTransport:
    """Delivers to the receiver of this installation; passes messages to other domains to the wrapped transport."""

    def __init__(self, transport: Transport, *, host: str, port: int, ehlo_name: str, is_received: IsReceived) -> None:
        self._transport = transport
        self._is_received = is_received
        self._receiver = RelayTransport(
            RelayUrl(host, port, TlsMode.NONE),
            ehlo_name=ehlo_name,
            on_acceptance=DeliveryStatus.DELIVERED,
            limits=INBOX_LIMITS,
            is_local=True,
        )

    @property
    def trouble(self) -> str | None:
        return self._transport.trouble

    async def deliver(self, message: OutgoingMessage, *, lease: SendPermit) -> DeliveryOutcome:
        """Deliver one message. Every failure is an outcome; only LeaseLost is raised."""
        is_own = await self._is_received(message.recipient.rpartition("@")[2].lower())
        return await (self._receiver if is_own else self._transport).deliver(message, lease=lease)

    def end_sessions(self) -> None:
        self._transport.end_sessions()
        self._receiver.end_sessions()
