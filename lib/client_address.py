"""Where a request comes from, as far as it can be believed."""

import re
from collections.abc import Mapping
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Any

from django.conf import settings

from lib.address_guard import Address, unwrap

# Some proxies add the port: 192.0.2.1:4711, [2001:db8::1]:4711.
WITH_PORT = re.compile(r"\[([^\]]*)\](?::\d+)?|([^:]*):\d+")


def client_address(meta: Mapping[str, Any]) -> Address | None:
    """Return the peer, or the right-most address of X-Forwarded-For that no trusted proxy has.

    meta: a request's META. Everything to the left of that address, the client wrote itself. None where the
    peer has no address, as on a Unix socket.
    """
    hops = reversed(meta.get("HTTP_X_FORWARDED_FOR", "").split(","))
    address = _read(meta.get("REMOTE_ADDR", ""))
    while address is not None and _is_trusted(address):
        hop = _read(next(hops, ""))
        if hop is None:
            break
        address = hop
    return address


def network_of(address: Address) -> str:
    """Return what is limited as one client: an IPv4 address, or the /64 that one IPv6 subscriber has to choose from."""
    if isinstance(address, IPv6Address):
        return str(IPv6Network((int(address), 64), strict=False))
    return str(address)


def _is_trusted(address: Address) -> bool:
    return any(address in network for network in settings.TRUSTED_PROXIES)


def _read(text: str) -> Address | None:
    text = text.strip()
    if found := WITH_PORT.fullmatch(text):
        text = found[1] or found[2] or ""
    try:
        return unwrap(ip_address(text))
    except ValueError:
        return None
