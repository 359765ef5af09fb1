"""Source addresses of a direct transport: those of this machine, from which it can connect."""

import socket
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
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
        return _pairs((*self.clean, *self.listed)) or [()]


@dataclass(frozen=True)
class SourceOption:
    """A source of a transport, as one that a message may leave from.

    name: of the pairs of the source; the same one while a block list has another address.
    addresses: to connect from.
    since: the first day of a source that is new.
    is_listed: whether new messages leave it to others.
    """

    name: str
    addresses: Source
    since: date | None = None
    is_listed: bool = False


@dataclass(frozen=True)
class OwnAddresses:
    """The addresses of a transport; without any, the system chooses one.

    since: the first day of those that are new.
    overflows: whether what exceeds their messages of a day leaves by other addresses.
    """

    addresses: tuple[Address, ...] = ()
    since: Mapping[Address, date] = field(default_factory=dict)
    overflows: bool = True

    def sources(self) -> list[tuple[Source, date | None]]:
        """Return the sources and their first days. An address of each family makes one, if they have the same day."""
        days = dict.fromkeys(self.since.get(address) for address in self.addresses)
        groups = {day: [one for one in self.addresses if self.since.get(one) == day] for day in days}
        return [(source, day) for day, group in groups.items() for source in _pairs(group)] or [((), None)]

    def options(self, listed: Collection[Address]) -> list[SourceOption]:
        """Return the sources, those with a listed address marked. If all have one, none is marked.

        An address without a listing, whose source has another one that is listed, serves a source without its family.
        """
        if not listed:
            return self._unlisted
        sources = self.sources()
        clean = [source for source, _ in sources if not any(one in listed for one in source)]
        if not clean:
            choice = SourceChoice.among(self.addresses, listed=listed)
            usable = {*choice.clean, *choice.listed}
            parts = [(source, tuple(one for one in source if one in usable), day) for source, day in sources]
            return [SourceOption(_name(source), part, day) for source, part, day in parts if part]
        spare = [one for source, _ in sources if source not in clean for one in source if one not in listed]
        return [
            SourceOption(_name(source), _completed(source, spare), day)
            if source in clean
            else SourceOption(_name(source), source, day, is_listed=True)
            for source, day in sources
        ]

    @cached_property
    def _unlisted(self) -> list[SourceOption]:
        return [SourceOption(_name(source), source, day) for source, day in self.sources()]


def _pairs(addresses: Sequence[Address]) -> list[Source]:
    by_family = [[one for one in addresses if one.version == version] for version in (4, 6)]
    return [tuple(filter(None, pair)) for pair in zip_longest(*by_family)]


def _name(source: Source) -> str:
    return " ".join(map(str, source))


def _completed(source: Source, spare: Sequence[Address]) -> Source:
    families = {one.version for one in source}
    further = next((one for one in spare if one.version not in families), None)
    return source if further is None else (*source, further)


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
