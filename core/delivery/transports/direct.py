"""Direct transport: delivers each message to the mail hosts of its recipient's domain (docs/decisions/0023)."""

import random
import ssl
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from core.delivery.bounces.classification import SmtpStage
from core.delivery.bounces.reasons import RECIPIENT_FAULTS, FailureReason
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply, deferred, safe_text
from core.delivery.message.compose import OutgoingMessage
from core.delivery.receivers import ReceiverTable
from core.delivery.receivers_file import built_in_receivers
from core.delivery.transports.circuit_breaker import Clock
from core.delivery.transports.destinations import DestinationBusy, DestinationLimits, Destinations
from core.delivery.transports.interface import LeaseCheck
from core.delivery.transports.smtp.attempt import SmtpAttempt
from core.delivery.transports.smtp.errors import connection_error
from core.delivery.transports.smtp.mail_host import RFC_5321, MailHost, Timeouts
from core.delivery.transports.smtp.mx import MAX_ADDRESSES, MailLoop, MxHosts, MxLookup, NoMxHost, NoSuchDomain, NullMx
from core.delivery.transports.smtp.session_factory import SessionFactory
from core.delivery.transports.smtp.tls import TlsMode
from core.lib.network.address_guard import Address, TargetRefused
from core.lib.network.resolver import DnsError

# A new destination gets two connections: a silent host then cannot occupy many of a worker's sessions.
DIRECT_LIMITS = DestinationLimits(max_connections=10, initial_connections=2)
# F32: a zone may disappear briefly, so NXDOMAIN must be confirmed by a second query.
CONFIRM_AFTER = timedelta(minutes=5)


@dataclass(frozen=True)
class _MxFailure:
    """A permanent DNS result: the enhanced code (RFC 3463, RFC 7505) and the reason of the bounce."""

    code: str
    reason: FailureReason


MX_FAILURES: dict[type[NoMxHost], _MxFailure] = {
    NullMx: _MxFailure("5.1.10", FailureReason.BAD_DOMAIN),
    MailLoop: _MxFailure("5.4.6", FailureReason.ROUTING_LOOP),
    NoSuchDomain: _MxFailure("5.1.2", FailureReason.BAD_DOMAIN),
}
# When no host has a usable address: the temporary error is reported first, then the refused target.
ERROR_PRIORITY = (DnsError, TargetRefused, NoMxHost)


class DirectTransport:
    """Delivers to the MX hosts of each domain; their 250 reply means `delivered`.

    context: for messages that require TLS, by default that of the system's certificate authorities.
    sources: the addresses of this machine to connect from, by default those that the system chooses.
    receivers: the table of receivers, by default the built-in one.
    """

    def __init__(
        self,
        mx: MxLookup,
        *,
        ehlo_name: str,
        port: int = 25,
        limits: DestinationLimits = DIRECT_LIMITS,
        timeouts: Timeouts = RFC_5321,
        context: ssl.SSLContext | None = None,
        sources: Sequence[Address] = (),
        receivers: ReceiverTable | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        self._context = context
        self._sources = sources
        self._receivers = receivers or built_in_receivers()
        self._mx = mx
        self._ehlo_name = ehlo_name
        self._port = port
        self._destinations = Destinations(limits, clock=clock)
        self._session_factory = SessionFactory(timeouts)

    @property
    def trouble(self) -> str | None:
        """Return None: no single host can stop all deliveries."""
        return None

    async def deliver(self, message: OutgoingMessage, *, lease: LeaseCheck) -> DeliveryOutcome:
        """Deliver one message. Every failure is an outcome; only LeaseLost is raised."""
        domain = message.recipient.rpartition("@")[2]
        attempt = SmtpAttempt(
            message,
            lease=lease,
            session_factory=self._session_factory,
            on_acceptance=DeliveryStatus.DELIVERED,
            ehlo_name=self._ehlo_name,
        )
        try:
            hosts = await self._mx.find(domain)
            tls = TlsMode.OPPORTUNISTIC.for_message(requires_tls=message.requires_tls)
            # Separate connections and breakers: a host may fail only the messages that require TLS.
            destination = self._destinations.get_or_create((tls, hosts.key))
            async with destination.slot():
                outcome = await attempt.run(destination, self._mail_hosts(hosts, tls))
                return replace(outcome, receiver=self._receivers.receiver_of_host(hosts.best).key)
        except NoMxHost as error:
            return _no_mx_host(error, message)
        except DnsError as error:
            return deferred(FailureReason.DNS, f"The DNS lookup failed: {error}")
        except TargetRefused:
            return deferred(FailureReason.TARGET_REFUSED, f"The mail hosts of {domain} have no permitted address.")
        except DestinationBusy as busy:
            return busy.outcome

    def close(self) -> None:
        """Close the idle sessions."""
        self._destinations.close()

    end_sessions = close

    async def _mail_hosts(self, hosts: MxHosts, tls: TlsMode) -> AsyncIterator[MailHost]:
        """Yield a MailHost for each address of each host. Raises the error of highest priority if there is none."""
        first: Exception | None = None
        count = 0
        for name in sorted(hosts.shuffled(), key=self._session_factory.is_down):
            try:
                addresses = await self._mx.addresses(name)
            except ERROR_PRIORITY as error:
                first = _higher_priority(first, error)
                continue
            for address in self._reachable(addresses)[: MAX_ADDRESSES - count]:
                count += 1
                context = self._context if tls.is_mandatory else None
                source = self._source(address)
                yield MailHost(str(address), self._port, name, self._ehlo_name, tls, context=context, source=source)
        if first and not count:
            raise first
        if not count:
            text = "The mail hosts have no address of a family of sourceAddresses."
            raise connection_error(SmtpStage.CONNECT, text)

    def _reachable(self, addresses: Sequence[Address]) -> Sequence[Address]:
        families = {source.version for source in self._sources}
        return [one for one in addresses if one.version in families] if families else addresses

    def _source(self, address: Address) -> str | None:
        """Return one of the source addresses of the family of an address; None lets the system choose."""
        sources = [str(source) for source in self._sources if source.version == address.version]
        return random.choice(sources) if sources else None  # noqa: S311 - spreads load, not a secret


def _higher_priority(known: Exception | None, new: Exception) -> Exception:
    return new if known is None or _priority(new) < _priority(known) else known


def _priority(error: Exception) -> int:
    return next(rank for rank, kind in enumerate(ERROR_PRIORITY) if isinstance(error, kind))


def _no_mx_host(error: NoMxHost, message: OutgoingMessage) -> DeliveryOutcome:
    """Bounce, or defer until a missing domain is confirmed."""
    failure = MX_FAILURES[type(error)]
    if isinstance(error, NoSuchDomain) and not _is_confirmed(message):
        return deferred(FailureReason.BAD_DOMAIN_UNCONFIRMED, f"{failure.code} {error}")
    reply = Reply(0, safe_text(f"{failure.code} {error}"))
    return DeliveryOutcome(
        DeliveryStatus.BOUNCED, reply, failure.reason, is_recipient_fault=failure.reason in RECIPIENT_FAULTS
    )


def _is_confirmed(message: OutgoingMessage) -> bool:
    return message.last_reason == FailureReason.BAD_DOMAIN_UNCONFIRMED and message.last_reply_age >= CONFIRM_AFTER
