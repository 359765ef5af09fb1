"""The DNS zone of a domain and its provider, by NS records: where the owner enters the records."""

import asyncio
from dataclasses import dataclass

from core.lib.network.resolver import DnsError, Resolver
from domains.dns_providers import find_provider
from domains.record_checks.dns_cache import DnsCache

# Each is a lookup; a zone is seldom more than one label above a domain.
MAX_NAMES = 4


@dataclass(frozen=True)
class ExpectedZone:
    """A domain whose zone is sought, up to its organizational domain."""

    domain: str
    organizational_domain: str


@dataclass(frozen=True)
class ZoneCheck:
    """The zone of a domain.

    name: empty if no NS records were found.
    provider: a key of PROVIDERS, or empty.
    """

    name: str
    provider: str


async def find_zone(expected: ExpectedZone, resolver: Resolver) -> ZoneCheck:
    """Return the zone of a domain: the closest name with NS records. A failed lookup is no error."""
    dns = DnsCache(resolver)
    names = _names_up(expected)
    try:
        answers = await asyncio.gather(*(_name_servers(dns, name) for name in names))
    finally:
        await dns.close()
    found = ((name, servers) for name, servers in zip(names, answers, strict=True) if servers)
    name, servers = next(found, ("", ()))
    return ZoneCheck(name, find_provider(servers))


def _names_up(expected: ExpectedZone) -> list[str]:
    """Return the domain and the names above it, up to the organizational domain, of these the last MAX_NAMES."""
    labels = expected.domain.split(".")
    count = len(labels) - len(expected.organizational_domain.split("."))
    return [".".join(labels[place:]) for place in range(count + 1)][-MAX_NAMES:]


async def _name_servers(dns: DnsCache, name: str) -> tuple[str, ...]:
    try:
        answer = await dns.look_up(name, "NS")
    except DnsError:
        return ()
    # The answer for a CNAME has the name servers of its target.
    return answer.records if answer.canonical_name in {"", name} else ()
