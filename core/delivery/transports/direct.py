"""Direct transport: delivers each message to the mail hosts of its recipient's domain (docs/decisions/0023)."""

import ssl
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from core.delivery.bounces.classification import SmtpStage
from core.delivery.bounces.reasons import RECIPIENT_FAULTS, FailureReason
from core.delivery.bounces.replies import (
    DeliveryOutcome,
    DeliveryStatus,
    Reply,
    SessionTls,
    deferred,
    safe_text,
)
from core.delivery.message.compose import OutgoingMessage
from core.delivery.pacing.choice import SourceRanking
from core.delivery.pacing.destination import PacedDestination
from core.delivery.pacing.shares import DayUsedUp, PaceShare, PaceShares
from core.delivery.receivers import Receiver, ReceiverTable
from core.delivery.transports.circuit_breaker import Clock
from core.delivery.transports.destinations import DestinationBusy, DestinationLimits, Destinations
from core.delivery.transports.interface import LeaseCheck
from core.delivery.transports.smtp.attempt import SmtpAttempt
from core.delivery.transports.smtp.errors import connection_error
from core.delivery.transports.smtp.mail_host import RFC_5321, MailHost, Timeouts
from core.delivery.transports.smtp.mx import MAX_ADDRESSES, MailLoop, MxHosts, MxLookup, NoMxHost, NoSuchDomain, NullMx
from core.delivery.transports.smtp.session_factory import SessionFactory
from core.delivery.transports.smtp.tls import TlsMode
from core.delivery.transports.source_addresses import (
    ListedAddresses,
    OwnAddresses,
    Source,
    SourceChoice,
    SourceOption,
    no_addresses,
)
from core.delivery.transports.tls_policies.policies import DomainTlsPolicy, TlsPolicies, TlsPolicyFailed
from core.lib.network.address_guard import Address, TargetRefused
from core.lib.network.resolver import DnsError

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
    own: returns the addresses of this machine to connect from, at the time of each message.
    sources: the same for addresses that never change; by default those that the system chooses.
    listed: returns those of them that new messages leave to others.
    paces: the shares of this process of what receivers take.
    receivers: the table of receivers.
    policies: the TLS policies of recipient domains; None to ignore them.
    """

    def __init__(
        self,
        mx: MxLookup,
        *,
        ehlo_name: str,
        port: int = 25,
        limits: DestinationLimits = DestinationLimits(),  # noqa: B008 - frozen
        timeouts: Timeouts = RFC_5321,
        context: ssl.SSLContext | None = None,
        sources: Sequence[Address] = (),
        own: Callable[[], OwnAddresses] | None = None,
        listed: ListedAddresses = no_addresses,
        paces: PaceShares,
        receivers: ReceiverTable,
        policies: TlsPolicies | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        self._context = context
        fixed = OwnAddresses(tuple(sources))
        self._own = own or (lambda: fixed)
        self._listed = listed
        self._paces = paces
        self._receivers = receivers
        self._policies = policies
        self._limits = limits
        self._clock = clock
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
        domain = message.recipient.rpartition("@")[2].lower()
        attempt = SmtpAttempt(
            message,
            lease=lease,
            session_factory=self._session_factory,
            on_acceptance=DeliveryStatus.DELIVERED,
            ehlo_name=self._ehlo_name,
        )
        try:
            found = await self._mx.find(domain)
            policy = await self._policy(message, domain, found)
            hosts = policy.permitted(found)
            receiver = self._receivers.receiver_of_host(hosts.best)
            tls = TlsMode.OPPORTUNISTIC.for_message(requires_tls=message.requires_tls or receiver.tls == "required")
            return await self._send(attempt, message, _Route(hosts, tls, policy), receiver)
        except NoMxHost as error:
            return _no_mx_host(error, message)
        except DnsError as error:
            return deferred(FailureReason.DNS, f"The DNS lookup failed: {error}")
        except TargetRefused:
            return deferred(FailureReason.TARGET_REFUSED, f"The mail hosts of {domain} have no permitted address.")
        except TlsPolicyFailed as error:
            tls_failure = SessionTls(version=None, policy=error.kind, verified=False, result=error.result)
            return replace(deferred(FailureReason.TLS, str(error)), tls=error.policy.for_report(tls_failure))
        except DestinationBusy as busy:
            return busy.outcome

    def close(self) -> None:
        """Close the idle sessions."""
        self._destinations.close()

    async def _policy(self, message: OutgoingMessage, domain: str, hosts: MxHosts) -> DomainTlsPolicy:
        if self._policies is None or message.waives_tls_policies:
            return DomainTlsPolicy(domain)
        return await self._policies.find(domain, hosts)

    async def _send(
        self, attempt: SmtpAttempt, message: OutgoingMessage, route: "_Route", receiver: Receiver
    ) -> DeliveryOutcome:
        """Make the attempt from the first source that may send the message. Raises DestinationBusy."""
        own, listed = self._own(), await self._listed()
        sources = SourceChoice.among(own.addresses, listed=listed)
        options = await self._reaching(own.options(listed), route.hosts)
        ranking = SourceRanking(options, self._paces, stream=message.stream, receiver=receiver)
        used_up: list[DayUsedUp] = []
        for choice in ranking.choices(released_for=message.released_for, overflows=own.overflows):
            destination = self._destination(route, choice.share)
            slot = destination.slot(released_for=message.released_for, is_taken_over=choice.is_taken_over)
            try:
                async with slot:
                    mail_hosts = self._mail_hosts(route, sources, choice.option.addresses)
                    outcome = await attempt.run(destination, mail_hosts)
                    return replace(outcome, receiver=receiver.key, tls=route.policy.for_report(outcome.tls))
            except DayUsedUp as error:
                used_up.append(error)
                if not own.overflows and not error.is_taken_over:
                    break
        return _used_up(used_up, ranking, overflows=own.overflows)

    end_sessions = close

    async def _reaching(self, options: list[SourceOption], hosts: MxHosts) -> list[SourceOption]:
        """Return the options that can reach the best mail host. Only sources of different families need its address."""
        families = [{one.version for one in option.addresses} for option in options]
        if all(one == families[0] for one in families):
            return options
        try:
            reachable = {address.version for address in await self._mx.addresses(hosts.best)}
        except ERROR_PRIORITY:
            return options
        found = [option for option, own in zip(options, families, strict=True) if own & reachable]
        return found if any(not option.is_listed for option in found) else options

    def _destination(self, route: "_Route", share: PaceShare) -> PacedDestination:
        """Return the connections to hosts. Messages that require TLS have others: a host may fail only these."""
        limits = replace(self._limits, max_messages=share.receiver.messages_per_connection)
        found = self._destinations.get_or_create(
            (share, *route.key), lambda: PacedDestination(limits, share, clock=self._clock)
        )
        assert isinstance(found, PacedDestination)
        return found

    async def _mail_hosts(self, route: "_Route", sources: SourceChoice, source: Source) -> AsyncIterator[MailHost]:
        """Yield a MailHost for each address of each host. Raises the error of highest priority if there is none."""
        first: Exception | None = None
        count = 0
        for name in sorted(route.hosts.shuffled(), key=self._session_factory.is_down):
            try:
                addresses = await self._mx.addresses(name)
            except ERROR_PRIORITY as error:
                first = _higher_priority(first, error)
                continue
            for address in _of_source(sources.reachable(addresses), source)[: MAX_ADDRESSES - count]:
                count += 1
                local = next((str(one) for one in source if one.version == address.version), None)
                yield self._mail_host(name, address, route, source=local)
        if first and not count:
            raise first
        if not count:
            text = "The mail hosts have no address of a family of sourceAddresses."
            raise connection_error(SmtpStage.CONNECT, text)

    def _mail_host(self, name: str, address: Address, route: "_Route", *, source: str | None) -> MailHost:
        tls = route.policy.host_tls(name, route.tls)
        return MailHost(
            str(address),
            self._port,
            name,
            self._ehlo_name,
            tls.mode,
            context=self._context if tls.mode.may_need_authority else None,
            source=source,
            policy=tls.kind,
            requirement=tls.requirement,
            dane=tls.dane,
            names=tls.names,
            failure=tls.failure,
        )


@dataclass(frozen=True)
class _Route:
    """The way of a message to its receiver: the permitted mail hosts, and the TLS that message and policy require.

    tls: the mode without a policy.
    """

    hosts: MxHosts
    tls: TlsMode
    policy: DomainTlsPolicy

    @property
    def key(self) -> tuple[object, ...]:
        return self.tls, self.policy.key, self.hosts.key


def _of_source(addresses: Sequence[Address], source: Source) -> Sequence[Address]:
    families = {one.version for one in source}
    return [one for one in addresses if one.version in families] if families else addresses


def _used_up(errors: Sequence[DayUsedUp], ranking: SourceRanking, *, overflows: bool) -> DeliveryOutcome:
    """Return the outcome of a message that no source may send today."""
    exceeds_day = overflows and any(not error.is_taken_over for error in errors)
    outcome = ranking.wait_for_stopped() or errors[0].outcome
    return replace(outcome, exceeds_day=exceeds_day)


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
