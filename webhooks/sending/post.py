"""Webhook delivery attempt: one POST to an endpoint, in the network loop, without database access.

An attempt always ends within 15 s and reads at most 64 KiB.
"""

import asyncio
import email.utils
import ssl
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import aiohttp
from multidict import CIMultiDictProxy
from yarl import URL

from core.delivery.bounces.replies import safe_text
from core.lib.network.address_guard import TargetRefused
from core.lib.network.guarded_http import GuardedSession, NoAddress
from core.lib.network.resolver import DnsError, Resolver
from core.lib.network.target_urls import UrlRules
from webhooks.sending.signing import HEADERS

CONNECT_SECONDS = 5.0
ATTEMPT_SECONDS = 15.0
DNS_SECONDS = 3.0
MAX_READ_BYTES = 64 * 1024
MAX_KEPT_BYTES = 4 * 1024
MAX_READ_RETRY_AFTER = timedelta(days=2)

# Error codes; the first matching row applies. They are coarse on purpose, so that endpoint URLs cannot be used to
# scan a network.
FAILURES: tuple[tuple[type[BaseException], str], ...] = (
    (TargetRefused, "forbidden_target"),
    (NoAddress, "dns_failed"),
    (DnsError, "dns_failed"),
    (aiohttp.ClientConnectorDNSError, "dns_failed"),
    (TimeoutError, "timed_out"),
    (aiohttp.ClientSSLError, "tls_failed"),
    (aiohttp.ClientConnectorCertificateError, "tls_failed"),
    (ssl.SSLError, "tls_failed"),
    (aiohttp.ClientConnectionError, "connection_failed"),
    (OSError, "connection_failed"),
    (aiohttp.ClientError, "invalid_answer"),
    (ValueError, "invalid_answer"),
)


INTERNAL_ERRORS = frozenset({"lease_lost", "secret_unreadable", "internal_error"})


@dataclass(frozen=True)
class PostAttempt:
    """The result of a POST.

    status_code: None without a response.
    error: "" for a success.
    answer: safe to show.
    """

    status_code: int | None
    error: str
    answer: str | None
    seconds: float
    retry_after: timedelta | None = None

    @property
    def counts_for_endpoint(self) -> bool:
        return self.error not in INTERNAL_ERRORS


def internal_failure(error: str) -> PostAttempt:
    """Return an attempt that failed before anything was sent to the endpoint."""
    return PostAttempt(None, error, None, 0.0)


class Poster:
    """Posts to endpoints over kept connections. Use it within the network loop."""

    def __init__(self, rules: UrlRules, *, resolver: Resolver, tls: ssl.SSLContext | None = None) -> None:
        self._rules, self._resolver, self._tls = rules, resolver, tls
        self._session: GuardedSession | None = None

    async def post(self, url: str, *, body: bytes, headers: dict[str, str]) -> PostAttempt:
        """Make one attempt. Failures are returned as a PostAttempt, too."""
        started = time.monotonic()
        try:
            async with asyncio.timeout(ATTEMPT_SECONDS):
                target = await self._open().check(url)
                status_code, answer, retry_after = await self._exchange(target, body, headers)
        except (TargetRefused, NoAddress, DnsError, aiohttp.ClientError, OSError, ValueError) as error:
            code = next(code for kind, code in FAILURES if isinstance(error, kind))
            return PostAttempt(None, code, None, time.monotonic() - started)
        return PostAttempt(status_code, _status_error(status_code), answer, time.monotonic() - started, retry_after)

    async def close(self) -> None:
        if self._session:
            await self._session.close()

    async def _exchange(self, url: URL, body: bytes, headers: dict[str, str]) -> tuple[int, str, timedelta | None]:
        request = self._open().client.post(url, data=body, headers=headers, allow_redirects=False)
        async with request as response:
            answer = await _read(response.content)
            return response.status, safe_text(answer, max_length=MAX_KEPT_BYTES), read_retry_after(response.headers)

    def _open(self) -> GuardedSession:
        # Created on first use: a session belongs to the event loop it is created in.
        if self._session is None:
            # The timeout of the whole attempt includes the DNS lookup, so the client sets none.
            timeout = aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS)
            self._session = GuardedSession(
                self._rules, resolver=self._resolver, timeout=timeout, headers=HEADERS, tls=self._tls
            )
        return self._session


async def _read(content: aiohttp.StreamReader) -> str:
    """Read to the end or to MAX_READ_BYTES; return the first MAX_KEPT_BYTES."""
    kept, count = b"", 0
    while count < MAX_READ_BYTES:
        chunk = await content.read(MAX_READ_BYTES - count)
        if not chunk:
            break
        count += len(chunk)
        kept += chunk[: MAX_KEPT_BYTES - len(kept)]
    return kept.decode("utf-8", "replace")


def _status_error(status_code: int) -> str:
    if 200 <= status_code < 300:
        return ""
    return "redirect" if 300 <= status_code < 400 else "status"


def read_retry_after(headers: CIMultiDictProxy[str]) -> timedelta | None:
    """Read Retry-After, seconds or a date (RFC 9110, section 10.2.3); None for a past date or any other text."""
    text = headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit():
        return min(timedelta(seconds=int(text[:9])), MAX_READ_RETRY_AFTER) or None
    try:
        retry_at = email.utils.parsedate_to_datetime(text)
        wait = retry_at.replace(tzinfo=retry_at.tzinfo or UTC) - datetime.now(UTC)
    except (ValueError, TypeError, OverflowError):
        return None
    return min(wait, MAX_READ_RETRY_AFTER) if wait > timedelta() else None
