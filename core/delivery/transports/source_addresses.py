"""Source addresses of a direct transport: those of this machine, from which it can connect."""

import socket
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Self

from core.lib.network.address_guard import Address

# The addresses to connect from, of different families; none if the system chooses.
Source = tuple[Address, ...]
# Returns the addresses that a block list has, at the time of each message.
ListedAddresses = Callable[[], Awaitable[Collection[Address]]]


async def no_addresses() -> Collection[Address]:
    return ()


@dataclass(frozen=True)
class SourceChoice:
    """The source addresses that a new message may leave from; without any, the system chooses one.

    clean: those that no block list has.
    listed: those that a block list has, of the families without a clean one. A listed address is better than none:
        many receivers do not use the list.
    """

    clean: tuple[Address, ...] = ()
    listed: tuple[Address, ...] = ()

    @classmethod
    def among(cls, addresses: Sequence[Address], *, listed: Collection[Address]) -> Self:
        clean = tuple(address for address in addresses if address not in listed)
        families = {address.version for address in clean}
        return cls(clean, tuple(address for address in addresses if address.version not in families))

    def reachable(self, hosts: Sequence[Address]) -> Sequence[Address]:
        """Return the addresses of a mail host that can be reached, those from a clean address first."""
        if not self.clean and not self.listed:
            return hosts
        return [*_of_families(hosts, self.clean), *_of_families(hosts, self.listed)]

    def sources(self) -> list[Source]:
        """Return the sources: the first IPv4 and the first IPv6 address, and so on; without any, the system's."""
        addresses = (*self.clean, *self.listed)
        by_family = [[one for one in addresses if one.version == version] for version in (4, 6)]
        return [tuple(filter(None, pair)) for pair in zip_longest(*by_family)] or [()]


def _of_families(addresses: Sequence[Address], others: Sequence[Address]) -> list[Address]:
    families = {other.version for other in others}
    return [address for address in addresses if address.version in families]


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
