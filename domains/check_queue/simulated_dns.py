"""Simulated DNS of the embedded mode: reserved names have no records, so nobody could try a verified domain there.

The answers are those of a zone with the records that the service asks for (docs/decisions/0321).
"""

from collections.abc import Iterable
from typing import Any

from django.conf import settings

from core.lib.network.resolver import DnsAnswer, LookupStatus
from domains.records import DnsRecord
from domains.services import is_dns_optional

# RFC 2606, section 2: names that never exist in the public DNS, and that domains may have.
RESERVED_TLDS = frozenset({"example", "test"})
# RFC 5737: an address of no host, so that a name counts as one that accepts email.
ADDRESS = "192.0.2.1"


def is_simulated(name: str) -> bool:
    """Return whether the records of a domain are simulated: in the embedded mode, unless it has name servers."""
    is_trial = settings.EMBEDDED and is_dns_optional() and not settings.DNS_SERVERS
    return is_trial and name.rpartition(".")[2] in RESERVED_TLDS


class SimulatedResolver:
    """Answers lookups from records to publish, as a core.lib.network.resolver.Resolver does from name servers."""

    def __init__(self, domain: str, records: Iterable[DnsRecord]) -> None:
        self._records: dict[tuple[str, str], list[Any]] = {(domain, "A"): [ADDRESS]}
        for record in records:
            value = (record.priority, record.value) if record.type == "MX" else record.value
            self._records.setdefault((record.fqdn, record.type), []).append(value)

    async def look_up(self, name: str, kind: str) -> DnsAnswer:
        if records := self._records.get((name, kind)):
            return DnsAnswer(LookupStatus.FOUND, tuple(records), name)
        is_known = any(known == name or known.endswith(f".{name}") for known, _ in self._records)
        return DnsAnswer(LookupStatus.NO_DATA if is_known else LookupStatus.NO_NAME, canonical_name=name)
