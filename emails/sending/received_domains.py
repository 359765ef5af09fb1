"""The domains whose email this installation receives, for the transport that delivers to their mail hosts."""

import asyncio
import logging
import time
from concurrent.futures import ThreadPoolExecutor

from django.conf import settings
from django.db import Error, connection

from domains.models import ReceivingDomain

log = logging.getLogger("postrider.worker")

# A change is in force within this time, and a domain that is deleted in the meantime is refused by the receiver.
REFRESH_SECONDS = 5.0


class ReceivedDomains:
    """The names of active receiving domains, read in a thread: the network loop never waits for the database."""

    def __init__(self) -> None:
        self._names: frozenset[str] = frozenset()
        self._read_at = float("-inf")
        self._reading: asyncio.Future[frozenset[str]] | None = None
        self._thread = ThreadPoolExecutor(1, "received-domains")

    async def includes(self, domain: str) -> bool:
        """Return whether email to a domain, an A-label in lower case, comes here."""
        if self._reading is None and time.monotonic() - self._read_at >= REFRESH_SECONDS:
            self._reading = asyncio.get_running_loop().run_in_executor(self._thread, self._read)
        if self._reading:
            # All messages of a batch wait for the same answer.
            self._names = await asyncio.shield(self._reading)
            self._read_at, self._reading = time.monotonic(), None
        return domain in self._names

    def _read(self) -> frozenset[str]:
        active = ReceivingDomain.objects.filter(status=ReceivingDomain.ReceivingStatus.ACTIVE)
        try:
            names = {*active.values_list("name", flat=True), settings.RECEIVING_DOMAIN}
        except Error as error:
            log.warning("the receiving domains could not be read", exc_info=error)
            return self._names
        finally:
            # Rarely used: a connection of its own would stay open for each process.
            connection.close()
        return frozenset(names - {""})
