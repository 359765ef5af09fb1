"""The transports of this process: those of TRANSPORTS_FILE, or the one that DELIVERY_TRANSPORT names."""

from collections.abc import Callable, Collection

from django.conf import settings

from core.delivery.diverting import DivertingTransport
from core.delivery.pacing.shares import PaceShares
from core.delivery.recipients import INBOX
from core.delivery.transports.anymail import THREADS, AnymailTransport
from core.delivery.transports.circuit_breaker import NEVER
from core.delivery.transports.destinations import DestinationLimits
from core.delivery.transports.direct import DirectTransport
from core.delivery.transports.interface import Transport
from core.delivery.transports.own_receiver import OwnReceiverTransport
from core.delivery.transports.relay import RelayTransport, inbox_transport
from core.delivery.transports.router import TransportRouter
from core.delivery.transports.simulator import SimulatorTransport
from core.delivery.transports.smtp.mx import MxLookup
from core.delivery.transports.smtp.smtp_url import parse_smtp_url
from core.delivery.transports.source_addresses import ListedAddresses, OwnAddresses, no_addresses
from core.delivery.transports.transports_file import DEFAULT, TransportSpec
from core.lib.network.address_guard import Address
from core.lib.worker.event_loop import close_at_stop
from core.lib.worker.once import once
from domains.received_domains import ReceivedDomains
from emails.pacing.database_thread import run_in_database_thread
from emails.pacing.paces import exchange
from emails.sources.listed import listed_addresses
from emails.sources.own_addresses import CurrentAddresses
from emails.tls_policies.configured import direct_guard, direct_resolver, tls_policies


def configured_transport() -> Transport:
    """Return a transport for this process. Raises BadSmtpUrl or BackendUnsuitable; config.checks reports both first."""
    named = settings.TRANSPORTS
    if named.is_named:
        members = {name: NAMED_KINDS[spec.kind](spec) for name, spec in named.transports.items()}
    else:
        members = {DEFAULT: TRANSPORTS[settings.DELIVERY_TRANSPORT]()}
    router = TransportRouter(named, members)
    diverting = DivertingTransport(router, recipients=settings.RECIPIENTS, capture=_capture)
    return SimulatorTransport(diverting, domain=settings.SIMULATOR_DOMAIN)


def find_router(transport: Transport) -> TransportRouter | None:
    """Return the router behind a transport, if it has one."""
    inner = transport
    while isinstance(inner, SimulatorTransport | DivertingTransport):
        inner = inner.transport
    return inner if isinstance(inner, TransportRouter) else None


async def _capture(source: bytes, return_path: str, recipient: str) -> bool:
    return await run_in_database_thread(INBOX["inbox"], source, return_path, recipient)


@once
def pace_shares() -> PaceShares:
    """Return the shares of this process: several direct transports may use the same address."""
    shares = PaceShares(exchange)
    close_at_stop(shares.close)
    return shares


def _inbox() -> Transport:
    return inbox_transport(port=settings.INBOX_PORT, ehlo_name=settings.EHLO_NAME)


def _relay() -> Transport:
    # A single relay: it may use all the sessions of this process.
    limits = DestinationLimits(max_connections=settings.DELIVERY_CONNECTIONS)
    return RelayTransport(parse_smtp_url(settings.SMTP_URL), ehlo_name=settings.EHLO_NAME, limits=limits)


def _direct(
    ehlo_name: str = "", own: Callable[[], OwnAddresses] = OwnAddresses, listed: ListedAddresses = no_addresses
) -> Transport:
    ehlo_name = ehlo_name or settings.EHLO_NAME
    resolver, guard = direct_resolver(), direct_guard()
    mx = MxLookup(resolver, guard, own_names=[settings.EHLO_NAME, ehlo_name])
    direct = DirectTransport(
        mx,
        ehlo_name=ehlo_name,
        port=settings.DIRECT_SMTP_PORT,
        own=own,
        listed=listed,
        paces=pace_shares(),
        receivers=settings.RECEIVERS,
        policies=tls_policies(resolver, guard),
    )
    # The domains that this installation receives need no address in DNS.
    host, port = settings.RECEIVING_SERVER
    return OwnReceiverTransport(
        direct, host=host, port=port, ehlo_name=ehlo_name, is_received=ReceivedDomains().includes
    )


def _anymail() -> Transport:
    return AnymailTransport(settings.ANYMAIL_BACKEND)


TRANSPORTS: dict[str, Callable[[], Transport]] = {
    "inbox": _inbox,
    "smtp": _relay,
    "direct": _direct,
    "anymail": _anymail,
}


# The breaker of the router decides about named transports, not those of their parts.
def _named_direct(spec: TransportSpec) -> Transport:
    all_listed, own = listed_addresses(), CurrentAddresses(spec)

    async def listed() -> Collection[Address]:
        return await all_listed.get() if own.spec.leave_when_listed else ()

    return _direct(spec.ehlo_name, own.read, listed)


def _named_relay(spec: TransportSpec) -> Transport:
    assert spec.relay
    limits = DestinationLimits(max_connections=settings.DELIVERY_CONNECTIONS, breaker_policy=NEVER)
    ehlo_name = spec.ehlo_name or settings.EHLO_NAME
    return RelayTransport(spec.relay, ehlo_name=ehlo_name, limits=limits, login_policy=NEVER)


def _named_provider(spec: TransportSpec) -> Transport:
    limits = DestinationLimits(max_connections=THREADS, breaker_policy=NEVER)
    return AnymailTransport(spec.backend, options=spec.backend_options, limits=limits, login_policy=NEVER)


NAMED_KINDS: dict[str, Callable[[TransportSpec], Transport]] = {
    "direct": _named_direct,
    "smtp": _named_relay,
    "anymail": _named_provider,
}
