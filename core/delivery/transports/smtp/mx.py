"""MX hosts: the mail hosts of a domain (RFC 5321, section 5.1; RFC 7505) and their permitted addresses."""

import asyncio
import random
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address

from core.lib.network.address_guard import Address, Guard, TargetRefused
from core.lib.network.resolver import DnsAnswer, LookupStatus, Resolver

# F33: a hostile zone may list hundreds of hosts.
MAX_HOSTS = 10
MAX_ADDRESSES = 20
CACHE_SECONDS = 300.0
MAX_CACHED_DOMAINS = 10_000


class NoMxHost(Exception):
    """Raised when a domain has no mail host to connect to; the text gives the reason."""


class NoSuchDomain(NoMxHost):
    """Raised when the domain does not exist, or has neither mail hosts nor an address."""


class NullMx(NoMxHost):
    """Raised when the domain declares that it accepts no mail."""


class MailLoop(NoMxHost):
    """Raised when the best mail host of the domain is Postrider itself."""


@dataclass(frozen=True)
class MxHosts:
    """The mail hosts of a domain with their preferences, best first; hosts of equal preference in any order.

    is_secure: a validating resolver has verified them.
    """

    hosts: tuple[tuple[int, str], ...]
    is_secure: bool = False

    @property
    def key(self) -> tuple[str, ...]:
        """Return the destination key: domains with the same hosts share connections and limits."""
        return tuple(sorted(host for _, host in self.hosts))

    @property
    def best(self) -> str:
        """Return the best host, which shows the receiver of the domain; of those of equal preference, the first."""
        return min(self.hosts)[1]

    def shuffled(self) -> list[str]:
        """Return the hosts to try, best first; hosts of equal preference in random order."""
        ranked = sorted(self.hosts, key=lambda row: (row[0], random.random()))  # noqa: S311 - spreads load
        return [host for _, host in ranked[:MAX_HOSTS]]


class MxLookup:
    """Looks up and caches MX hosts. own_names: the names of this server, excluded to prevent mail loops."""

    def __init__(self, resolver: Resolver, guard: Guard, *, own_names: Sequence[str] = ()) -> None:
        self._resolver = resolver
        self._guard = guard
        self._own_names = frozenset(name.lower().rstrip(".") for name in own_names)
        self._cache: OrderedDict[str, tuple[float, MxHosts]] = OrderedDict()

    async def find(self, domain: str) -> MxHosts:
        """Return the hosts of a domain. Raises NoMxHost, and DnsError when the lookup fails."""
        domain = domain.lower().rstrip(".")
        if cached := self._cache.get(domain):
            until, hosts = cached
            if time.monotonic() < until:
                return hosts
        answer = await self._resolver.look_up(domain, "MX")
        hosts = self._read_hosts(domain, answer)
        self._cache_hosts(domain, hosts, min(answer.ttl_seconds, CACHE_SECONDS))
        return hosts

    async def addresses(self, host: str) -> tuple[Address, ...]:
        """Return the addresses to connect to, IPv6 first. Raises TargetRefused, NoSuchDomain and DnsError."""
        checked = self._guard.check_host(host)
        if not isinstance(checked, str):
            raise TargetRefused(f"{host}: a mail host must be a name, RFC 5321 section 5.1")
        answers = await asyncio.gather(
            self._resolver.look_up(checked, "AAAA"), self._resolver.look_up(checked, "A"), return_exceptions=True
        )
        addresses = [ip_address(text) for answer in answers if isinstance(answer, DnsAnswer) for text in answer.records]
        if not addresses:
            for answer in answers:
                if isinstance(answer, BaseException):
                    raise answer
            raise NoSuchDomain(f"The mail host {host} has no address.")
        return self._guard.check_addresses(addresses)

    def _read_hosts(self, domain: str, answer: DnsAnswer) -> MxHosts:
        if answer.status is LookupStatus.NO_NAME:
            raise NoSuchDomain(f"The domain {domain} does not exist.")
        if answer.status is LookupStatus.NO_DATA:
            # Without any MX record, the domain itself is the mail host, by its A and AAAA records.
            return MxHosts(((0, domain),), answer.is_secure)
        # RFC 7505, section 3: a null MX has a meaning only alone.
        hosts = tuple(row for row in answer.records if row[1])
        if not hosts:
            raise NullMx(f"The domain {domain} accepts no mail (null MX).")
        return MxHosts(self._exclude_own_hosts(domain, hosts), answer.is_secure)

    def _exclude_own_hosts(self, domain: str, hosts: tuple[tuple[int, str], ...]) -> tuple[tuple[int, str], ...]:
        """Drop this server and every host that is not preferred to it, to prevent loops (RFC 5321, section 5.1)."""
        own = [preference for preference, host in hosts if host in self._own_names]
        better = tuple(row for row in hosts if not own or row[0] < min(own))
        if not better:
            raise MailLoop(f"The mail host of {domain} is this server, which does not accept mail for the domain.")
        return better

    def _cache_hosts(self, domain: str, hosts: MxHosts, seconds: float) -> None:
        self._cache[domain] = time.monotonic() + seconds, hosts
        self._cache.move_to_end(domain)
        if len(self._cache) > MAX_CACHED_DOMAINS:
            self._cache.popitem(last=False)
