"""The own addresses that take no new email while a block list has them (docs/decisions/0350)."""

from datetime import timedelta
from ipaddress import ip_address

from django.db.models.functions import Now

from core.lib.network.address_guard import Address
from core.lib.worker.refreshed import RefreshedValue
from emails.models import SourceListing
from emails.sources.configured import current_specs
from emails.sources.own_addresses import watched_addresses, watched_lists

# Within a minute of its listing, an address takes no new email.
REFRESH_SECONDS = 20.0
# A list that has not answered for so long was perhaps closed, and its last answer moves no email any more.
OLDEST_ANSWER = timedelta(days=1)


def addresses_to_leave() -> frozenset[Address]:
    """Return the listed addresses of the transports that have leaveWhenListed."""
    specs = current_specs()
    left = [
        str(address)
        for address, names in watched_addresses().items()
        if any(specs[name].leave_when_listed for name in names)
    ]
    if not left:
        return frozenset()
    listed = SourceListing.objects.of(left, lists=watched_lists()).listed()
    recent = listed.filter(checked_at__gt=Now() - OLDEST_ANSWER).values_list("source__address", flat=True)
    return frozenset(map(ip_address, recent))


def listed_addresses() -> RefreshedValue[frozenset[Address]]:
    """Return the result of addresses_to_leave for the transports of this process, read again every 20 seconds."""
    return RefreshedValue(
        addresses_to_leave, initial=frozenset[Address](), seconds=REFRESH_SECONDS, name="listed-addresses"
    )
