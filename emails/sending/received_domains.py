"""The domains whose email this installation receives, for the transport that delivers to their mail hosts."""

import asyncio
import logging
import time
from concurrent.futures import ThreadPoolExecutor

from django.conf import settings
from django.db import Error, close_old_connections

from domains.models import ReceivingDomain

log = logging.getLogger("postrider.worker")

# A change is in force within this time, and a domain that is deleted in the meantime is refused by the receiver.
REFRESH_SECONDS = 5.0


class ReceivedDomains:
    """The names of active receiving domains, read in a thread: the network loop never waits for the database."""

    def __init__(self) -> None:
        self._names: frozenset[str] = frozenset()
        self._read_at = float("-inf")
        self._thread = ThreadPoolExecutor(1, "received-domains")

    async def includes(self, domain: str) -> bool:
        """Return whether email to a domain, an A-label in lower case, comes here."""
        if time.monotonic() - self._read_at >= REFRESH_SECONDS:
            self._read_at = time.monotonic()
            self._names = await asyncio.get_running_loop().run_in_executor(self._thread, self._read)
        return domain in self._names

    def _read(self) -> frozenset[str]:
        close_old_connections()
        active = ReceivingDomain.objects.filter(status=ReceivingDomain.ReceivingStatus.ACTIVE)
        try:
            names = {*active.values_list("name", flat=True), settings.RECEIVING_DOMAIN}
        except Error:
            log.warning("the receiving domains could not be read")
            return self._names
        return frozenset(names - {""})
