"""SMTP attempt: one try to deliver one message, over an idle session or to the hosts one after another."""

from collections.abc import AsyncIterator

from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus
from core.delivery.bounces.signals import CLOSING, SignalKind, signal_of
from core.delivery.message.compose import OutgoingMessage
from core.delivery.transports.composing import compose_message
from core.delivery.transports.destinations import Destination
from core.delivery.transports.interface import LeaseCheck, require_valid
from core.delivery.transports.smtp.errors import SmtpError
from core.delivery.transports.smtp.mail_host import MailHost
from core.delivery.transports.smtp.session import Receipt, Session
from core.delivery.transports.smtp.session_factory import SessionFactory


class SmtpAttempt:
    """One attempt. The message is composed once, when the first session is open.

    on_acceptance: the status that a 250 reply to the final dot stands for.
    ehlo_name: said by the sessions.
    """

    def __init__(
        self,
        message: OutgoingMessage,
        *,
        lease: LeaseCheck,
        session_factory: SessionFactory,
        on_acceptance: DeliveryStatus,
        ehlo_name: str,
    ) -> None:
        self._message = message
        self._lease = lease
        self._on_acceptance = on_acceptance
        self._session_factory = session_factory
        self._ehlo_name = ehlo_name
        self._deadline = session_factory.deadline()
        self._began_at = 0.0
        self._composed = b""

    async def run(self, destination: Destination, hosts: AsyncIterator[MailHost]) -> DeliveryOutcome:
        """Return the outcome. hosts: the hosts to try, in order; at least one.

        Raises LeaseLost and the errors of the hosts iterator.
        """
        self._began_at = destination.clock()
        # The message may have expired while it waited for a connection.
        require_valid(self._lease)
        try:
            return await self._try(destination, hosts)
        except SmtpError as error:
            outcome = error.outcome(sender_names=self._sender_names, recipient=self._message.recipient)
            # A host whose 250 means `sent` is a relay, which passes on replies of others.
            is_relay = self._on_acceptance is DeliveryStatus.SENT
            signal = signal_of(outcome, stage=error.stage, receiver=destination.receiver, is_relay=is_relay)
            if signal.kind is not SignalKind.NONE:
                destination.record_signal(signal, outcome, began_at=self._began_at)
            elif error.is_connection_error:
                destination.record_failure()
            else:
                destination.record_refusal(outcome)
            return outcome

    @property
    def _sender_names(self) -> tuple[str, ...]:
        addresses = (self._message.sender.spec, self._message.return_path)
        return (*(address.rpartition("@")[2] for address in addresses), self._ehlo_name)

    async def _try(self, destination: Destination, hosts: AsyncIterator[MailHost]) -> DeliveryOutcome:
        last: SmtpError | None = None
        while session := destination.take_session():
            try:
                return await self._send(destination, session)
            except SmtpError as error:
                # A connection that the host closed between two messages says nothing about this message.
                if not error.is_stale_connection:
                    raise
        async for host in hosts:
            # Those before it may have taken minutes.
            require_valid(self._lease)
            try:
                session = await self._session_factory.open(host, deadline=self._deadline)
                outcome = await self._send(destination, session)
            except SmtpError as error:
                if not error.may_try_next_host:
                    raise
                last = error
            else:
                if last and last.reply.code == CLOSING:
                    # Another host of the receiver asked for less.
                    closed = last.outcome(sender_names=self._sender_names, recipient=self._message.recipient)
                    destination.narrow(closed, began_at=self._began_at)
                return outcome
        assert last
        raise last

    async def _send(self, destination: Destination, session: Session) -> DeliveryOutcome:
        try:
            self._composed = self._composed or await compose_message(self._message)
            receipt = await session.send(
                self._message, composed=self._composed, lease=self._lease, deadline=self._deadline
            )
        except SmtpError as error:
            error.tls = session.tls
            raise
        finally:
            destination.return_session(session)
        destination.record_acceptance(began_at=self._began_at)
        return self._accepted(receipt)

    def _accepted(self, receipt: Receipt) -> DeliveryOutcome:
        is_requested = self._on_acceptance is DeliveryStatus.SENT and receipt.dsn_requested
        return DeliveryOutcome(self._on_acceptance, receipt.reply, success_dsn_requested=is_requested, tls=receipt.tls)
