"""The own addresses and the block lists of the settings, as far as they are watched."""

from collections import defaultdict

from django.conf import settings

from core.delivery.sources.blocklists import list_name
from core.lib.network.address_guard import Address, Guard


def watched_addresses() -> dict[Address, list[str]]:
    """Return the source addresses of direct transports, each with the names of its transports.

    Private addresses are seen by no receiver and no block list: they are left out, except for trials on one machine.
    So are all addresses if BLOCKLISTS is empty.
    """
    guard = Guard(allow_private=settings.DELIVERY_ALLOW_PRIVATE_NETWORKS)
    found: defaultdict[Address, list[str]] = defaultdict(list)
    for spec in settings.TRANSPORTS.transports.values() if settings.BLOCKLISTS else ():
        for address in spec.source_addresses:
            if not guard.refusal_reason(address):
                found[address].append(spec.name)
    return dict(found)


def watched_lists() -> dict[str, str]:
    """Return the zones of the block lists by the names to show."""
    return {list_name(zone): zone for zone in settings.BLOCKLISTS}
