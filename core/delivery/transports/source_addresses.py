"""Source addresses of a direct transport: those of this machine, from which it can connect."""

import socket
from collections.abc import Sequence

from core.lib.network.address_guard import Address


def usable_addresses(addresses: Sequence[Address]) -> tuple[Address, ...]:
    """Return the addresses that this machine has; the workers of other machines may have the others."""
    return tuple(address for address in addresses if _is_local(address))


def _is_local(address: Address) -> bool:
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind((str(address), 0))
    except OSError:
        return False
    return True
