"""Relay transport: delivers every message to one server, a relay or the built-in inbox."""

import ssl
from collections.abc import AsyncIterator
from dataclasses import replace

from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, parked
from core.delivery.message.compose import OutgoingMessage
from core.delivery.transports.circuit_breaker import BreakerPolicy
from core.delivery.transports.credentials import POLICY, CredentialsBreaker, is_demand
from core.delivery.transports.destinations import Destination, DestinationBusy, DestinationLimits
from core.delivery.transports.interface import LeaseCheck
from core.delivery.transports.smtp.attempt import SmtpAttempt
from core.delivery.transports.smtp.mail_host import RFC_5321, MailHost, Timeouts
from core.delivery.transports.smtp.session_factory import SessionFactory
from core.delivery.transports.smtp.smtp_url import RelayUrl
from core.delivery.transports.smtp.tls import TlsMode

RELAY_LIMITS = DestinationLimits(max_connections=20)
REJECTING = "The relay rejects the login in SMTP_URL."
DEMANDING = "The relay demands a login or TLS that SMTP_URL does not provide:"
INBOX_LIMITS = DestinationLimits(breaker_policy=BreakerPolicy(initial_open_seconds=1.0, max_open_seconds=5.0))


class RelayTransport:
    """Delivers to one server.

    on_acceptance: the status that its 250 reply stands for, sent or delivered.
    is_local: messages stay on this machine, so that those which require TLS need none.
    login_policy: the policy for refused logins, which pause it.
    """

    def __init__(
        self,
        url: RelayUrl,
        *,
        ehlo_name: str,
        on_acceptance: DeliveryStatus = DeliveryStatus.SENT,
        limits: DestinationLimits = RELAY_LIMITS,
        timeouts: Timeouts = RFC_5321,
        context: ssl.SSLContext | None = None,
        is_local: bool = False,
        login_policy: BreakerPolicy = POLICY,
    ) -> None:
        self._host = MailHost(
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
        self._session_factory = SessionFactory(timeouts)
        self._is_local = is_local
        self._destination = Destination(limits)
        # Separate connections and breaker: the relay may fail only the messages that require TLS.
        self._tls_destination = Destination(limits)
        self._credentials = CredentialsBreaker(login_policy)
        self._trouble = REJECTING

    @property
    def trouble(self) -> str | None:
        """Return a message for the operator if the relay rejects the login, or demands a login or TLS."""
        return self._trouble if self._credentials.is_tripped else None

    async def deliver(self, message: OutgoingMessage, *, lease: LeaseCheck) -> DeliveryOutcome:
        """Deliver one message. Every failure is an outcome; only LeaseLost is raised."""
        if self._credentials.is_open:
            text = "The relay rejects the login, or demands a login or TLS."
            return parked(FailureReason.LOGIN_REFUSED, text, waits_for="transport")
        tls = self._host.tls.for_message(requires_tls=message.requires_tls and not self._is_local)
        is_usual = tls is self._host.tls
        destination = self._destination if is_usual else self._tls_destination
        host = self._host if is_usual else replace(self._host, tls=tls)
        try:
            async with destination.slot():
                return await self._attempt(message, lease, destination, host)
        except DestinationBusy as busy:
            return busy.outcome

    def close(self) -> None:
        """Close the idle sessions."""
        self._destination.close()
        self._tls_destination.close()

    end_sessions = close

    async def _attempt(
        self, message: OutgoingMessage, lease: LeaseCheck, destination: Destination, host: MailHost
    ) -> DeliveryOutcome:
        attempt = SmtpAttempt(
            message,
            lease=lease,
            session_factory=self._session_factory,
            on_acceptance=self._on_acceptance,
            ehlo_name=host.ehlo_name,
        )
        with self._credentials.call():
            outcome = await attempt.run(destination, _hosts(host))
        self._credentials.record(outcome)
        if is_demand(outcome):
            self._trouble = f"{DEMANDING} {outcome.reply.code} {outcome.reply.text}"
        elif outcome.reason == FailureReason.LOGIN_REFUSED:
            self._trouble = REJECTING
        return outcome


async def _hosts(host: MailHost) -> AsyncIterator[MailHost]:
    yield host


def inbox_transport(*, port: int, ehlo_name: str) -> RelayTransport:
    """Return the transport of the embedded mode: SMTP to the built-in inbox, which acts as the recipient's host."""
    url = RelayUrl("127.0.0.1", port, TlsMode.NONE)
    return RelayTransport(
        url, ehlo_name=ehlo_name, on_acceptance=DeliveryStatus.DELIVERED, limits=INBOX_LIMITS, is_local=True
    )
