"""Tracking hosts in the memory of each process: requests to them need no database (docs/decisions/0205)."""

import logging
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass

from django.db import Error, connection
from django.db.models import Q
from django.db.models.functions import Now

from domains.models import TrackingHost
from domains.tracking_hosts import RETIREMENT

RENEW_SECONDS = 30.0
# After a failure, as when the database is down.
RETRY_SECONDS = 5.0

log = logging.getLogger("postrider.tracking")


@dataclass(frozen=True)
class ServedHost:
    """A host at which this installation answers.

    owners: the workspaces whose links work there; none until it is proven. has_certificate: whether the proxy may
    obtain one, because the host was seen in DNS.
    """

    owners: frozenset[str] = frozenset()
    has_certificate: bool = False


class TrackingHosts:
    """All tracking hosts by name, as last read."""

    def __init__(self) -> None:
        self._hosts: dict[str, ServedHost] = {}

    def find(self, name: str) -> ServedHost | None:
        return self._hosts.get(name)

    def read(self) -> None:
        """Read all hosts in one query."""
        self._hosts = collect_hosts(read_hosts())

    def keep_current(self) -> None:
        """Read the hosts every RENEW_SECONDS in a thread; after a failure, keep the last ones. Call it once."""
        threading.Thread(target=self._run, name="tracking-hosts", daemon=True).start()

    def _run(self) -> None:
        while True:
            time.sleep(RENEW_SECONDS if self._try_to_read() else RETRY_SECONDS)

    def _try_to_read(self) -> bool:
        try:
            self.read()
        except Error as error:
            log.warning("tracking hosts could not be read", extra={"data": {"error": type(error).__name__}})
            return False
        finally:
            connection.close()
        return True


def read_hosts() -> Iterable[TrackingHost]:
    """Return the hosts that may be requested: those of domains, and retired ones whose links still work."""
    served = Q(retired_at=None) | Q(proven_at__isnull=False, retired_at__gt=Now() - RETIREMENT)
    return TrackingHost.objects.filter(served).only("name", "workspace_id", "seen_at", "proven_at").iterator()


def collect_hosts(rows: Iterable[TrackingHost]) -> dict[str, ServedHost]:
    """Return hosts by name. Several rows have one name if workspaces wait for it, or if it has moved."""
    hosts: dict[str, ServedHost] = {}
    for row in rows:
        host = hosts.get(row.name, ServedHost())
        owners = {row.workspace_id} if row.proven_at else set()
        hosts[row.name] = ServedHost(host.owners | owners, host.has_certificate or bool(row.seen_at or row.proven_at))
    return hosts


tracking_hosts = TrackingHosts()
