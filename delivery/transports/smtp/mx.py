"""Which hosts take a domain's mail (RFC 5321, section 5.1; RFC 7505), and at which addresses we may call them."""

import asyncio
import random
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address

from lib.address_guard import Address, Guard, TargetRefused
from lib.resolver import Answer, Resolver, Status

# F33: a hostile zone may name hundreds.
MOST_HOSTS = 10
MOST_ADDRESSES = 20
KEEP_SECONDS = 300.0
KEEP_ROUTES = 10_000


class NoRoute(Exception):
    """There is no host to call; the text says why."""


class NoSuchDomain(NoRoute):
    """The domain does not exist, or has neither mail hosts nor an address."""


class NullMx(NoRoute):
    """The domain says that it takes no mail."""


class LoopsBack(NoRoute):
    """The best mail host of the domain is this one."""


@dataclass(frozen=True)
class Route:
    """A domain's mail hosts with their preferences, best first; equal ones in any order."""

    hosts: tuple[tuple[int, str], ...]

    @property
    def key(self) -> tuple[str, ...]:
        """Return what domains with the same hosts have in common: they share connections and limits."""
        return tuple(sorted(host for _, host in self.hosts))

    def shuffled(self) -> list[str]:
        """Return the hosts to try, best first, equal ones at random."""
        ranked = sorted(self.hosts, key=lambda row: (row[0], random.random()))  # noqa: S311 - spreads load
        return [host for _, host in ranked[:MOST_HOSTS]]


class Routes:
    """Finds and remembers routes. own_names: what we are called; mail for us must not go round in circles."""

    def __init__(self, resolver: Resolver, guard: Guard, *, own_names: Sequence[str] = ()) -> None:
        self._resolver = resolver
        self._guard = guard
        self._own = frozenset(name.lower().rstrip(".") for name in own_names)
        self._kept: OrderedDict[str, tuple[float, Route]] = OrderedDict()

    async def find(self, domain: str) -> Route:
        """Return the route to a domain. Raises NoRoute, and DnsTrouble when nobody can say."""
        domain = domain.lower().rstrip(".")
        if kept := self._kept.get(domain):
            until, route = kept
            if time.monotonic() < until:
                return route
        answer = await self._resolver.look_up(domain, "MX")
        route = self._route(domain, answer)
        self._keep(domain, route, min(answer.ttl_seconds, KEEP_SECONDS))
        return route

    async def addresses(self, host: str) -> tuple[Address, ...]:
        """Return the addresses to connect to, IPv6 first. Raises TargetRefused, NoSuchDomain and DnsTrouble."""
        checked = self._guard.check_host(host)
        if not isinstance(checked, str):
            raise TargetRefused(f"{host}: a mail host is a name, RFC 5321 section 5.1")
        answers = await asyncio.gather(
            self._resolver.look_up(checked, "AAAA"), self._resolver.look_up(checked, "A"), return_exceptions=True
        )
        found = [ip_address(text) for answer in answers if isinstance(answer, Answer) for text in answer.records]
        if not found:
            for answer in answers:
                if isinstance(answer, BaseException):
                    raise answer
            raise NoSuchDomain(f"The mail host {host} has no address.")
        return self._guard.check_addresses(found)

    def _route(self, domain: str, answer: Answer) -> Route:
        if answer.status is Status.NO_NAME:
            raise NoSuchDomain(f"The domain {domain} does not exist.")
        if answer.status is Status.NO_DATA:
            # The domain itself, by its A and AAAA: only where there is no MX at all.
            return Route(((0, domain),))
        hosts = tuple(answer.records)
        if any(not host for _, host in hosts):
            raise NullMx(f"The domain {domain} takes no mail (null MX).")
        return Route(self._without_us(domain, hosts))

    def _without_us(self, domain: str, hosts: tuple[tuple[int, str], ...]) -> tuple[tuple[int, str], ...]:
        """Leave out ourselves and all that is no better: they would send it to us (RFC 5321, section 5.1)."""
        own = [preference for preference, host in hosts if host in self._own]
        better = tuple(row for row in hosts if not own or row[0] < min(own))
        if not better:
            raise LoopsBack(f"The mail host of {domain} is this one, and it does not know the domain.")
        return better

    def _keep(self, domain: str, route: Route, seconds: float) -> None:
        self._kept[domain] = time.monotonic() + seconds, route
        self._kept.move_to_end(domain)
        if len(self._kept) > KEEP_ROUTES:
            self._kept.popitem(last=False)
