"""The own addresses and the block lists of the settings, as far as they are watched."""

from collections import defaultdict
from dataclasses import replace
from datetime import date
from ipaddress import ip_address

from django.conf import settings

from core.delivery.sources.blocklists import list_name
from core.delivery.transports.source_addresses import OwnAddresses, usable_addresses
from core.delivery.transports.transports_file import Overflow, TransportSpec
from core.lib.network.address_guard import Address, Guard
from emails.sources.configured import current_specs


def watched_addresses() -> dict[Address, list[str]]:
    """Return the source addresses of direct transports, each with the names of its transports.

    Private addresses are seen by no receiver and no block list: they are left out, except for trials on one machine.
    So are all addresses if BLOCKLISTS is empty.
    """
    guard = Guard(allow_private=settings.DELIVERY_ALLOW_PRIVATE_NETWORKS)
    found: defaultdict[Address, list[str]] = defaultdict(list)
    for spec in current_specs().values() if settings.BLOCKLISTS else ():
        for address in spec.source_addresses:
            if not guard.refusal_reason(address):
                found[address].append(spec.name)
    return dict(found)


def watched_lists() -> dict[str, str]:
    """Return the zones of the block lists by the names to show."""
    return {list_name(zone): zone for zone in settings.BLOCKLISTS}


class CurrentAddresses:
    """The addresses of a transport that this machine has, as the file has them now.

    spec: of the transport, as of the last read.
    """

    def __init__(self, spec: TransportSpec) -> None:
        self.spec = spec
        self._usable = self._find(spec)

    def read(self) -> OwnAddresses:
        """Return the addresses; the former ones if this machine has none of the new ones."""
        spec = current_specs().get(self.spec.name, self.spec)
        if spec is not self.spec:
            found, self.spec = self._find(spec), spec
            self._usable = found if found.addresses else self._usable
        return self._usable

    def _find(self, spec: TransportSpec) -> OwnAddresses:
        return replace(own_addresses(spec), addresses=usable_addresses(spec.source_addresses))


def own_addresses(spec: TransportSpec) -> OwnAddresses:
    """Return the addresses of a transport as direct delivery uses them."""
    return OwnAddresses(spec.source_addresses, spec.since, spec.overflow is Overflow.NEXT)


def first_day(source: str) -> date | None:
    """Return the first day of a source that is new; None for others. source: as in the pairs of paces."""
    if not source:
        return None
    address = ip_address(source.partition(" ")[0])
    return next((spec.since[address] for spec in current_specs().values() if address in spec.since), None)


def other_sources(source: str) -> list[str]:
    """Return the other sources of the transports that have a source, and let its email leave by them."""
    names: dict[str, None] = {}
    for spec in current_specs().values():
        own = [option.name for option in own_addresses(spec).options(())]
        if source in own and spec.overflow is Overflow.NEXT:
            names |= dict.fromkeys(own)
    return [name for name in names if name != source]


def new_addresses() -> dict[Address, date]:
    """Return the addresses with a first day, of all transports."""
    return {address: day for spec in current_specs().values() for address, day in spec.since.items()}
