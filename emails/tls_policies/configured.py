"""The resolver, the guard and the TLS policies of the direct transports of this process."""

import socket
from ipaddress import ip_address

from django.conf import settings

from core.delivery.transports.tls_policies.dane import DaneLookup
from core.delivery.transports.tls_policies.policies import TlsPolicies
from core.delivery.transports.tls_policies.sts_lookups import StsLookup, StsPolicies
from core.lib.network.address_guard import Address, Guard
from core.lib.network.resolver import Resolver
from core.lib.network.target_urls import UrlRules
from emails.tls_policies.store import DatabaseStsStore


def direct_resolver() -> Resolver:
    """Return the resolver of direct transports: the validating one, if there is one."""
    return Resolver(settings.DNSSEC_RESOLVER or settings.DNS_SERVERS, is_validating=bool(settings.DNSSEC_RESOLVER))


def direct_guard() -> Guard:
    """Return the guard of direct transports."""
    is_trial = settings.DELIVERY_ALLOW_PRIVATE_NETWORKS
    return Guard(own=frozenset() if is_trial else _own_addresses(), allow_private=is_trial)


def tls_policies(resolver: Resolver, guard: Guard) -> TlsPolicies | None:
    """Return the policies of recipient domains; None without them."""
    if not settings.DELIVERY_TLS_POLICIES:
        return None
    sts = StsPolicies(sts_lookup(resolver, guard), DatabaseStsStore())
    return TlsPolicies(sts, DaneLookup(resolver) if settings.DNSSEC_RESOLVER else None)


def sts_lookup(resolver: Resolver, guard: Guard) -> StsLookup:
    """Return the lookups of MTA-STS policies, and of domains that ask for TLS reports if reports are sent."""
    return StsLookup(resolver, UrlRules(guard=guard), finds_reports=bool(settings.TLSRPT_DOMAIN))


def _own_addresses() -> frozenset[Address]:
    """Return the addresses of this machine's hostname; a message sent to them would come back to Postrider."""
    try:
        addresses = socket.getaddrinfo(socket.gethostname(), None, type=socket.SOCK_STREAM)
    except OSError:
        return frozenset()
    return frozenset(ip_address(str(address[0]).partition("%")[0]) for *_, address in addresses)
