"""The domains whose email this installation receives, for the transport that delivers to their mail hosts."""

from django.conf import settings

from core.lib.worker.refreshed import RefreshedValue
from domains.models import ReceivingDomain

# A change is in force within this time, and a domain that is deleted in the meantime is refused by the receiver.
REFRESH_SECONDS = 5.0


class ReceivedDomains:
    """The names of active receiving domains."""

    def __init__(self) -> None:
        self._names = RefreshedValue(
            read_received_domains, initial=frozenset[str](), seconds=REFRESH_SECONDS, name="received-domains"
        )

    async def includes(self, domain: str) -> bool:
        """Return whether email to a domain, an A-label in lower case, comes here."""
        return domain in await self._names.get()


def read_received_domains() -> frozenset[str]:
    active = ReceivingDomain.objects.filter(status=ReceivingDomain.ReceivingStatus.ACTIVE)
    return frozenset({*active.values_list("name", flat=True), settings.RECEIVING_DOMAIN} - {""})
