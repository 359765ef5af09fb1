"""Transport selection: the transport that DELIVERY_TRANSPORT names, behind the simulator."""

import socket
from collections.abc import Callable
from ipaddress import ip_address

from django.conf import settings

from delivery.transports.anymail import AnymailTransport
from delivery.transports.destinations import DestinationLimits
from delivery.transports.direct import DirectTransport
from delivery.transports.interface import Transport
from delivery.transports.own_receiver import OwnReceiverTransport
from delivery.transports.relay import RelayTransport, inbox_transport
from delivery.transports.simulator import SimulatorTransport
from delivery.transports.smtp.mx import Routes
from delivery.transports.smtp.smtp_url import parse_smtp_url
from emails.sending.received_domains import ReceivedDomains
from lib.network.address_guard import Address, Guard
from lib.network.resolver import Resolver


def configured_transport() -> Transport:
    """Return a transport for this process. Raises BadSmtpUrl or BackendUnsuitable; config.checks reports both first."""
    return SimulatorTransport(TRANSPORTS[settings.DELIVERY_TRANSPORT](), domain=settings.SIMULATOR_DOMAIN)


def _inbox() -> Transport:
    return inbox_transport(port=settings.INBOX_PORT, ehlo_name=settings.EHLO_NAME)


def _relay() -> Transport:
    # A single relay: it may use all the sessions of this process.
    limits = DestinationLimits(max_connections=settings.DELIVERY_CONNECTIONS)
    return RelayTransport(parse_smtp_url(settings.SMTP_URL), ehlo_name=settings.EHLO_NAME, limits=limits)


def _direct() -> Transport:
    is_trial = settings.DELIVERY_ALLOW_PRIVATE_NETWORKS
    guard = Guard(own=frozenset() if is_trial else _own_addresses(), allow_private=is_trial)
    routes = Routes(Resolver(settings.DNS_SERVERS), guard, own_names=[settings.EHLO_NAME])
    direct = DirectTransport(routes, ehlo_name=settings.EHLO_NAME, port=settings.DIRECT_SMTP_PORT)
    host, port = settings.RECEIVING_SERVER
    return OwnReceiverTransport(
        direct, host=host, port=port, ehlo_name=settings.EHLO_NAME, is_received=ReceivedDomains().includes
    )


def _own_addresses() -> frozenset[Address]:
    """Return the addresses of this machine's hostname; a message sent to them would come back to Postrider."""
    try:
        addresses = socket.getaddrinfo(socket.gethostname(), None, type=socket.SOCK_STREAM)
    except OSError:
        return frozenset()
    return frozenset(ip_address(str(address[0]).partition("%")[0]) for *_, address in addresses)


def _anymail() -> Transport:
    return AnymailTransport(settings.ANYMAIL_BACKEND)


TRANSPORTS: dict[str, Callable[[], Transport]] = {
    "inbox": _inbox,
    "smtp": _relay,
    "direct": _direct,
    "anymail": _anymail,
}
