"""Tracking hosts in the memory of each process: requests to them need no database (docs/decisions/0205)."""

import logging
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from django.db import Error, connection

from core.lib.ids import from_uuid
from core.lib.sql import run
from core.lib.worker.database_outage import database_outage
from domains.tracking_hosts import RETIREMENT

RENEW_SECONDS = 30.0
# After a failure, as when the database is down.
RETRY_SECONDS = 5.0
# Hosts of domains, and retired ones whose links still work. Not a query of the models: an idle web process, which runs
# no other query, would copy 4 MB of its parent's memory (docs/decisions/0259).
SERVED_HOSTS = """
SELECT name, workspace_id, seen_at IS NOT NULL, proven_at IS NOT NULL FROM domains_trackinghost
WHERE retired_at IS NULL OR (proven_at IS NOT NULL AND retired_at > now() - %s)
"""

log = logging.getLogger("postrider.tracking")


@dataclass(frozen=True)
class ServedHost:
    """A host at which this installation answers.

    owners: the workspaces whose links work there; none until it is proven.
    has_certificate: whether the proxy may obtain one, because the host was seen in DNS.
    """

    owners: frozenset[str] = frozenset()
    has_certificate: bool = False


class HostRow(NamedTuple):
    name: str
    workspace_id: UUID
    is_seen: bool
    is_proven: bool


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
            log.warning("tracking hosts could not be read", exc_info=error)
            return False
        finally:
            connection.close()
        database_outage.record_success()
        return True


def read_hosts() -> list[HostRow]:
    """Return the hosts that may be requested."""
    return [HostRow(*row) for row in run(SERVED_HOSTS, [RETIREMENT])]


def collect_hosts(rows: Iterable[HostRow]) -> dict[str, ServedHost]:
    """Return hosts by name. Several rows have one name if workspaces wait for it, or if it has moved."""
    hosts: dict[str, ServedHost] = {}
    for row in rows:
        host = hosts.get(row.name, ServedHost())
        owners = {from_uuid(row.workspace_id, prefix="ws_")} if row.is_proven else set()
        hosts[row.name] = ServedHost(host.owners | owners, host.has_certificate or row.is_seen or row.is_proven)
    return hosts


tracking_hosts = TrackingHosts()
