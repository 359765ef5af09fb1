"""One attempt: a POST to an endpoint, in the network loop; knows no database.

Whatever the other side does, it ends within 15 s and reads 64 KiB at most.
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

from delivery.bounces.replies import safe_text
from lib.address_guard import TargetRefused
from lib.guarded_http import GuardedSession, NoAddress, Rules
from lib.resolver import DnsTrouble, Resolver

CONNECT_SECONDS = 5.0
ATTEMPT_SECONDS = 15.0
DNS_SECONDS = 3.0
MAX_READ_BYTES = 64 * 1024
MAX_KEPT_BYTES = 4 * 1024
MAX_RETRY_AFTER = timedelta(days=2)
HEADERS = {
    "content-type": "application/json",
    "user-agent": "Postrider-Webhooks/1.2",
    "accept": "*/*",
    # What arrives is kept as it is; nothing is ever unpacked.
    "accept-encoding": "identity",
}

# What is told of a failure, the first row that fits: coarse on purpose, so that an endpoint's URL is no tool to
# look around in a network.
FAILURES: tuple[tuple[type[BaseException], str], ...] = (
    (TargetRefused, "forbidden_target"),
    (NoAddress, "dns_failed"),
    (DnsTrouble, "dns_failed"),
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


FAULTS_OF_OURS = frozenset({"lease_lost", "secret_unreadable", "internal_error"})


@dataclass(frozen=True)
class Attempt:
    """How an attempt ended. status_code: None without an answer. error: empty for a success. answer: safe to show."""

    status_code: int | None
    error: str
    answer: str | None
    seconds: float
    retry_after: timedelta | None = None

    @property
    def tells_of_endpoint(self) -> bool:
        return self.error not in FAULTS_OF_OURS


def fault_of_ours(error: str) -> Attempt:
    """Return an attempt that failed before the endpoint was asked."""
    return Attempt(None, error, None, 0.0)


class Poster:
    """Posts to endpoints over connections that are kept; used within the network loop."""

    def __init__(self, rules: Rules, *, resolver: Resolver, tls: ssl.SSLContext | None = None) -> None:
        self._rules, self._resolver, self._tls = rules, resolver, tls
        self._session: GuardedSession | None = None

    async def post(self, url: str, *, body: bytes, headers: dict[str, str]) -> Attempt:
        """Make one attempt; every failure is an Attempt, too."""
        started = time.monotonic()
        try:
            async with asyncio.timeout(ATTEMPT_SECONDS):
                target = await self._open().check(url)
                status_code, answer, retry_after = await self._exchange(target, body, headers)
        except (TargetRefused, NoAddress, DnsTrouble, aiohttp.ClientError, OSError, ValueError) as error:
            return Attempt(None, _failure(error), None, time.monotonic() - started)
        return Attempt(status_code, _verdict(status_code), answer, time.monotonic() - started, retry_after)

    async def close(self) -> None:
        if self._session:
            await self._session.close()

    async def _exchange(self, url: URL, body: bytes, headers: dict[str, str]) -> tuple[int, str, timedelta | None]:
        request = self._open().client.post(url, data=body, headers=headers, allow_redirects=False)
        async with request as response:
            answer = await _read(response.content)
            return response.status, safe_text(answer, max_length=MAX_KEPT_BYTES), read_retry_after(response.headers)

    def _open(self) -> GuardedSession:
        # Made on first use: a session belongs to the loop that it is made in.
        if self._session is None:
            # The whole attempt has a time-out of its own, which the look-up of the name is part of.
            timeout = aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS)
            self._session = GuardedSession(
                self._rules, resolver=self._resolver, timeout=timeout, headers=HEADERS, tls=self._tls
            )
        return self._session


async def _read(content: aiohttp.StreamReader) -> str:
    """Read to the end or to MAX_READ_BYTES; return the beginning."""
    kept, count = b"", 0
    while count < MAX_READ_BYTES:
        chunk = await content.read(MAX_READ_BYTES - count)
        if not chunk:
            break
        count += len(chunk)
        kept += chunk[: MAX_KEPT_BYTES - len(kept)]
    return kept.decode("utf-8", "replace")


def _verdict(status_code: int) -> str:
    if 200 <= status_code < 300:
        return ""
    return "redirect" if 300 <= status_code < 400 else "status"


def _failure(error: BaseException) -> str:
    return next(code for kind, code in FAILURES if isinstance(error, kind))


def read_retry_after(headers: CIMultiDictProxy[str]) -> timedelta | None:
    """Read Retry-After, seconds or a date (RFC 9110, section 10.2.3); None for anything else and for the past."""
    text = headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit():
        return min(timedelta(seconds=int(text[:9])), MAX_RETRY_AFTER) or None
    try:
        moment = email.utils.parsedate_to_datetime(text)
        wait = moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)
    except (ValueError, TypeError, OverflowError):
        return None
    return min(wait, MAX_RETRY_AFTER) if wait > timedelta() else None
