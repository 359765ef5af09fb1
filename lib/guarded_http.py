"""HTTP to a host that a stranger chose: the URL is read once, and nothing but a checked address is connected to.

What other clients do behind one's back is off: redirects, proxies of the environment, cookies, decompression.
See docs/decisions/0033.
"""

import asyncio
import functools
import re
import socket
import ssl
import time
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import Any

from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.connector import Connection
from yarl import URL

from lib.address_guard import Address, AddressRefused, Guard, TargetRefused
from lib.resolver import DnsTrouble, Resolver

MAX_URL_LENGTH = 2048
MAX_ANSWERS = 16
# One answer serves the attempts of this moment; a name that moves is followed at once.
KEEP_SECONDS = 5.0
KEPT_NAMES = 10_000
# A verdict costs forty looks into a table, an endpoint is called again and again.
KEPT_VERDICTS = 10_000
# Below the five seconds after which many servers close: what they closed must not be written to.
KEEPALIVE_SECONDS = 4.0
DEFAULT_PORTS = {"https": 443, "http": 80}

# Only the host may hold other characters; it is turned into A-labels before anybody else reads it.
_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#\\]*)(?P<rest>[/?][!-~]*)?")
_AUTHORITY = re.compile(r"(?P<host>\[[^\[\]]*\]|[^:\[\]]+)(?::(?P<port>[0-9]{1,5}))?")


class UrlRefused(TargetRefused):
    """The URL itself rules it out; the text says why and tells nothing that its author did not write."""

    def __init__(self, text: str) -> None:
        self.text = text
        super().__init__(text)


class NoAddress(Exception):
    """The name exists nowhere, or has no address."""


@dataclass(frozen=True, kw_only=True)
class Rules:
    """Which URLs may be called. Where the guard lets private networks in, http and any port go with them."""

    guard: Guard
    ports: tuple[int, ...] = (443,)


@dataclass(frozen=True)
class Target:
    """A URL that may be called as far as its text tells; a name's addresses are yet to be checked."""

    url: URL
    host: Address | str


@functools.lru_cache(maxsize=KEPT_VERDICTS)
def read_target(text: str, *, rules: Rules) -> Target:
    """Read a URL; the result holds it in the one spelling that is called. Raises TargetRefused."""
    found = _URL.fullmatch(text) if len(text) <= MAX_URL_LENGTH else None
    if not found:
        raise UrlRefused(f"This is not a URL of at most {MAX_URL_LENGTH:,} characters, in ASCII but for the host.")
    scheme, rest = found["scheme"].lower(), found["rest"] or "/"
    _check_parts(scheme, found["authority"], rest, rules=rules)
    authority = _AUTHORITY.fullmatch(found["authority"])
    if not authority:
        raise UrlRefused("The URL has no host that can be read.")
    host = rules.guard.check_host(authority["host"])
    port = int(authority["port"] or DEFAULT_PORTS[scheme])
    if not _is_port_open(port, rules=rules):
        raise UrlRefused(f"Port {port} may not be called; use {_listed(rules.ports)}.")
    spelled = f"[{host}]" if isinstance(host, IPv6Address) else str(host)
    path = rest if rest.startswith("/") else f"/{rest}"
    return Target(URL(f"{scheme}://{spelled}:{port}{path}", encoded=True), host)


def _check_parts(scheme: str, authority: str, rest: str, *, rules: Rules) -> None:
    if scheme != "https" and not (scheme == "http" and rules.guard.allow_private):
        raise UrlRefused("The URL must begin with https://.")
    if "@" in authority:
        raise UrlRefused("The URL must hold no user name and no password.")
    if "#" in rest or "\\" in rest:
        raise UrlRefused("The URL must hold no fragment and no backslash.")


def _is_port_open(port: int, *, rules: Rules) -> bool:
    return port in rules.ports or (rules.guard.allow_private and 0 < port < 65_536)


def _listed(ports: tuple[int, ...]) -> str:
    return " or ".join(map(str, sorted(ports)))


class CheckedResolver(AbstractResolver):
    """Resolves names to addresses of which every single one passed the guard."""

    def __init__(self, resolver: Resolver, *, guard: Guard) -> None:
        self._resolver, self._guard = resolver, guard
        self._kept: dict[str, tuple[tuple[Address, ...], float]] = {}

    async def addresses(self, name: str) -> tuple[Address, ...]:
        """Return the addresses of a name. Raises AddressRefused, NoAddress, DnsTrouble."""
        kept = self._kept.get(name)
        if kept and time.monotonic() - kept[1] < KEEP_SECONDS:
            return kept[0]
        found = await self._ask(name)
        if not found:
            raise NoAddress(name)
        if len(found) > MAX_ANSWERS:
            raise AddressRefused(f"{name}: more than {MAX_ANSWERS} addresses")
        checked = self._guard.check_addresses(found)
        if len(self._kept) >= KEPT_NAMES:
            self._kept.clear()
        self._kept[name] = checked, time.monotonic()
        return checked

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        return [_result(host, address, port) for address in await self.addresses(host)]

    async def close(self) -> None:
        """Nothing is held open."""

    async def _ask(self, name: str) -> list[Address]:
        if self._guard.allow_private and _is_private(name):
            return await _ask_system(name)
        answers = await asyncio.gather(
            *(self._resolver.look_up(name, kind) for kind in ("A", "AAAA")), return_exceptions=True
        )
        failures = [answer for answer in answers if isinstance(answer, BaseException)]
        if len(failures) == len(answers):
            raise failures[0]
        good = [answer for answer in answers if not isinstance(answer, BaseException)]
        return [ip_address(record) for answer in good for record in answer.records]


def _is_private(name: str) -> bool:
    """Tell a name that the public DNS does not have, such as localhost or that of a neighbouring container."""
    try:
        Guard().check_host(name)
    except TargetRefused:
        return True
    return False


async def _ask_system(name: str) -> list[Address]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise NoAddress(name) from error
    return list(dict.fromkeys(ip_address(address[0]) for *_, address in found))


def _result(host: str, address: Address, port: int) -> ResolveResult:
    return ResolveResult(
        hostname=host,
        host=str(address),
        port=port,
        family=socket.AF_INET6 if isinstance(address, IPv6Address) else socket.AF_INET,
        proto=0,
        flags=socket.AI_NUMERICHOST,
    )


class GuardedConnector(TCPConnector):
    """Looks at the far end of every connection once more before a request is written to it."""

    def __init__(self, guard: Guard, **options: Any) -> None:
        super().__init__(**options)
        self._guard = guard

    async def connect(self, *args: Any, **options: Any) -> Connection:
        connection = await super().connect(*args, **options)
        transport = connection.transport
        peer = transport.get_extra_info("peername") if transport else None
        try:
            _check_peer(peer[0] if peer else None, guard=self._guard)
        except AddressRefused:
            connection.close()
            raise
        return connection


@functools.lru_cache(maxsize=KEPT_VERDICTS)
def _check_peer(peer: str | None, *, guard: Guard) -> None:
    """Raise AddressRefused for an address that may not be talked to, and for none."""
    guard.check_addresses([ip_address(peer)] if peer else [])


class GuardedSession:
    """One pool of connections behind one guard; made and used within one event loop."""

    def __init__(
        self,
        rules: Rules,
        *,
        resolver: Resolver,
        timeout: ClientTimeout,
        headers: dict[str, str],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.rules = rules
        self.resolver = CheckedResolver(resolver, guard=rules.guard)
        connector = GuardedConnector(
            rules.guard,
            resolver=self.resolver,
            use_dns_cache=False,
            # Whoever calls limits how much is under way.
            limit=0,
            keepalive_timeout=KEEPALIVE_SECONDS,
            # One context a process: making one takes 18 ms.
            ssl=tls or True,
        )
        self.client = ClientSession(
            connector=connector,
            timeout=timeout,
            headers=headers,
            cookie_jar=DummyCookieJar(),
            trust_env=False,
            auto_decompress=False,
        )

    async def check(self, url: str) -> URL:
        """Return the URL to call, after checking every address that its name has now.

        Raises TargetRefused, NoAddress, DnsTrouble.
        """
        target = read_target(url, rules=self.rules)
        if isinstance(target.host, str):
            await self.resolver.addresses(target.host)
        return target.url

    async def close(self) -> None:
        await self.client.close()


async def check_now(url: str, *, rules: Rules, resolver: Resolver) -> None:
    """Check a URL and what its name resolves to now; a name that has no address yet passes. Raises TargetRefused."""
    target = read_target(url, rules=rules)
    if isinstance(target.host, str):
        try:
            await CheckedResolver(resolver, guard=rules.guard).addresses(target.host)
        except (NoAddress, DnsTrouble):
            return
