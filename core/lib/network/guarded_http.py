"""HTTP to untrusted URLs: connections are made to checked addresses only.

Redirects, proxies of the environment, cookies and decompression are disabled. See docs/decisions/0033.
"""

import asyncio
import functools
import socket
import ssl
import time
from ipaddress import IPv6Address, ip_address
from typing import Any

from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, StreamReader, TCPConnector
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.connector import Connection
from yarl import URL

from core.lib.network.address_guard import Address, AddressRefused, Guard, TargetRefused
from core.lib.network.resolver import Resolver
from core.lib.network.target_urls import MAX_CACHED_CHECKS, UrlRules, parse_target

MAX_ANSWERS = 16
# Long enough to serve a burst of attempts, short enough to follow a name that moves.
CACHE_SECONDS = 5.0
MAX_CACHED_NAMES = 10_000
# Below the five seconds after which many servers close: a closed connection must not be written to.
KEEPALIVE_SECONDS = 4.0
CHUNK_BYTES = 64 * 1024


class NoAddress(Exception):
    """Raised when the name does not exist or has no address."""


class CheckedResolver(AbstractResolver):
    """Resolves names to addresses, all of which pass the guard."""

    def __init__(self, resolver: Resolver, *, guard: Guard) -> None:
        self._resolver, self._guard = resolver, guard
        self._cache: dict[str, tuple[tuple[Address, ...], float]] = {}

    async def addresses(self, name: str) -> tuple[Address, ...]:
        """Return the addresses of a name. Raises AddressRefused, NoAddress, DnsError."""
        cached = self._cache.get(name)
        if cached and time.monotonic() - cached[1] < CACHE_SECONDS:
            return cached[0]
        answers = await self._look_up(name)
        if not answers:
            raise NoAddress(name)
        if len(answers) > MAX_ANSWERS:
            raise AddressRefused(f"{name}: more than {MAX_ANSWERS} addresses")
        checked = self._guard.check_addresses(answers)
        if len(self._cache) >= MAX_CACHED_NAMES:
            self._cache.clear()
        self._cache[name] = checked, time.monotonic()
        return checked

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        return [_result(host, address, port) for address in await self.addresses(host)]

    async def close(self) -> None:
        """Required by AbstractResolver; nothing is open."""

    async def _look_up(self, name: str) -> list[Address]:
        if self._guard.allow_private and _is_private(name):
            return await _look_up_by_system(name)
        answers = await asyncio.gather(
            *(self._resolver.look_up(name, kind) for kind in ("A", "AAAA")), return_exceptions=True
        )
        errors = [answer for answer in answers if isinstance(answer, BaseException)]
        if len(errors) == len(answers):
            raise errors[0]
        valid = [answer for answer in answers if not isinstance(answer, BaseException)]
        return [ip_address(record) for answer in valid for record in answer.records]


def _is_private(name: str) -> bool:
    """Return whether the public DNS cannot have the name, such as localhost or the name of another container."""
    try:
        Guard().check_host(name)
    except TargetRefused:
        return True
    return False


async def _look_up_by_system(name: str) -> list[Address]:
    try:
        results = await asyncio.get_running_loop().getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise NoAddress(name) from error
    return list(dict.fromkeys(ip_address(address[0]) for *_, address in results))


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
    """Checks the peer address of every connection again before a request is written to it."""

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


@functools.lru_cache(maxsize=MAX_CACHED_CHECKS)
def _check_peer(peer: str | None, *, guard: Guard) -> None:
    """Raise AddressRefused for a refused or missing peer address."""
    guard.check_addresses([ip_address(peer)] if peer else [])


class GuardedSession:
    """A connection pool behind a guard; created and used within one event loop."""

    def __init__(
        self,
        rules: UrlRules,
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
            # The caller limits the number of requests in flight.
            limit=0,
            keepalive_timeout=KEEPALIVE_SECONDS,
            # One context per process: creating one takes 18 ms.
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
        """Return the normalized URL, after checking every address that its host resolves to now.

        Raises TargetRefused, NoAddress, DnsError.
        """
        target = parse_target(url, rules=self.rules)
        if isinstance(target.host, str):
            await self.resolver.addresses(target.host)
        return target.url

    async def close(self) -> None:
        await self.client.close()


async def read_at_most(content: StreamReader, limit: int) -> bytes | None:
    """Return the body of a response; None if it has more bytes."""
    body = bytearray()
    async for chunk in content.iter_chunked(CHUNK_BYTES):
        body += chunk
        if len(body) > limit:
            return None
    return bytes(body)


@functools.cache
def verified_tls() -> ssl.SSLContext:
    """Return the TLS context of this process: creating one takes 18 ms."""
    return ssl.create_default_context()
