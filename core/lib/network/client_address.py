"""Client address of a request, as far as trusted proxies vouch for it."""

import functools
import re
from collections.abc import Mapping
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Any

from django.conf import settings

from core.lib.network.address_guard import Address, unwrap

# Added by proxies: one on this machine would make external clients look local.
FORWARDED = ("HTTP_X_FORWARDED_FOR", "HTTP_X_REAL_IP", "HTTP_FORWARDED", "HTTP_VIA")
# Some proxies append the port: 192.0.2.1:4711, [2001:db8::1]:4711.
WITH_PORT = re.compile(r"\[([^\]]*)\](?::\d+)?|([^:]*):\d+")


def client_address(meta: Mapping[str, Any]) -> Address | None:
    """Return the peer, or the right-most address of X-Forwarded-For that is not a trusted proxy.

    meta: a request's META. All entries to the left of that address come from the client itself. Returns None if the
    peer has no address, as on a Unix socket.
    """
    hops = reversed(meta.get("HTTP_X_FORWARDED_FOR", "").split(","))
    address = _parse(meta.get("REMOTE_ADDR", ""))
    while address is not None and _is_trusted(address):
        hop = _parse(next(hops, ""))
        if hop is None:
            break
        address = hop
    return address


def client_network(address: Address) -> str:
    """Return the network that rate limits count as one client: an IPv4 address, or an IPv6 subscriber's /64."""
    if isinstance(address, IPv6Address):
        return str(IPv6Network((int(address), 64), strict=False))
    return str(address)


def is_trusted_proxy(peer: str) -> bool:
    """Return whether the peer of a request is in TRUSTED_PROXIES."""
    address = _parse(peer)
    return address is not None and _is_trusted(address)


def is_from_proxy_itself(meta: Mapping[str, Any]) -> bool:
    """Return whether the proxy sent a request, from this machine or as one of TRUSTED_PROXIES, and not for a client."""
    address = _parse(meta.get("REMOTE_ADDR", ""))
    is_near = address is not None and (address.is_loopback or _is_trusted(address))
    return is_near and not any(name in meta for name in FORWARDED)


def _is_trusted(address: Address) -> bool:
    return any(address in network for network in settings.TRUSTED_PROXIES)


@functools.lru_cache(maxsize=1024)
def _parse(text: str) -> Address | None:
    text = text.strip()
    if match := WITH_PORT.fullmatch(text):
        text = match[1] or match[2] or ""
    try:
        return unwrap(ip_address(text))
    except ValueError:
        return None
