"""MTA-STS lookups: the policies of domains, fetched once and cached in the process and in the database."""

import asyncio
import ssl
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from aiohttp import ClientError, ClientResponse, ClientSSLError, ClientTimeout

from core.delivery.bounces.replies import TlsResult, safe_text
from core.delivery.transports.tls_policies.report_address import read_report_address
from core.delivery.transports.tls_policies.sts_policy import (
    MAX_POLICY_BYTES,
    InvalidPolicy,
    StsPolicy,
    parse_policy,
    read_record_id,
)
from core.lib.network.address_guard import TargetRefused
from core.lib.network.guarded_http import GuardedSession, NoAddress, read_at_most, verified_tls
from core.lib.network.resolver import DnsError, Resolver
from core.lib.network.target_urls import UrlRules

FETCH_SECONDS = 10.0
# A domain is asked for its record once in this time, by whichever process sends to it first.
CHECK_SECONDS = 3600.0
# After a failed lookup or fetch.
RETRY_SECONDS = 300.0
# RFC 8461, section 10.2: a policy is fetched again long before its end, so that it outlives an attack on the fetches.
REFRESH_SECONDS = 86_400.0
MAX_CACHED_DOMAINS = 10_000
MAX_ERROR_LENGTH = 300
# TLSA records of a domain that its TLS reports show.
MAX_TLSA = 20


class PolicyUnavailable(Exception):
    """Raised when the policy host has no valid policy, with the reason as a sentence and as in TLS reports."""

    def __init__(self, text: str, result: TlsResult = TlsResult.STS_FETCH_ERROR) -> None:
        super().__init__(text)
        self.result = result


@dataclass(frozen=True)
class StsState:
    """What the installation knows about the policy of a domain, at the time of the database.

    policy: None without one, and after its end.
    record_id: of its TXT record.
    checked_seconds: since the last lookup of the record.
    fetched_seconds: since the policy was fetched.
    seconds_left: until its end.
    has_failed: whether the last lookup or fetch failed.
    failure: the result of the last fetch if there is no policy because of it.
    report_to: the URI for TLS reports; empty if the domain asks for none.
    """

    policy: StsPolicy | None = None
    record_id: str = ""
    checked_seconds: float = 0.0
    fetched_seconds: float = 0.0
    seconds_left: float = 0.0
    has_failed: bool = False
    failure: TlsResult | None = None
    report_to: str = ""

    @property
    def fresh_seconds(self) -> float:
        """The time for which no lookup is needed; after the end of a policy, a lookup follows soon."""
        is_over = self.record_id and not self.policy
        until_check = (RETRY_SECONDS if self.has_failed or is_over else CHECK_SECONDS) - self.checked_seconds
        return min(until_check, self.seconds_left) if self.policy else until_check

    @property
    def refresh_seconds(self) -> float:
        """The age at which a policy of the same id is fetched again: a day, at most half of its time."""
        return min(REFRESH_SECONDS, self.policy.max_age_seconds / 2) if self.policy else 0.0


@dataclass(frozen=True)
class StsFinding:
    """The result of a lookup. Without a policy, a known one stays in force until its end (section 8.3).

    error: why the record or the policy could not be read; empty if it could.
    failure: the result of a failed fetch in TLS reports.
    report_to: the URI for TLS reports, empty without one; None if it was not or could not be looked up.
    tlsa: the DANE records that were known at the same time, as texts.
    """

    policy: StsPolicy | None = None
    record_id: str = ""
    error: str = ""
    failure: TlsResult | None = None
    report_to: str | None = None
    tlsa: tuple[str, ...] = ()


class StsStore(Protocol):
    """The policies in the database."""

    async def read(self, domain: str) -> StsState | None:
        """Return what is known about a domain. Raises LeaseLost if the database does not answer."""

    async def save(self, domain: str, finding: StsFinding) -> StsState:
        """Record a lookup, and return what is known now. Raises LeaseLost if the database does not answer."""


class StsLookup:
    """Looks up records and fetches policies.

    rules: the URLs that may be called.
    tls: the context of fetches, by default that of the system's certificate authorities.
    finds_reports: whether to look up, too, which domains ask for TLS reports.
    """

    def __init__(
        self,
        resolver: Resolver,
        rules: UrlRules,
        *,
        tls: ssl.SSLContext | None = None,
        port: int = 443,
        finds_reports: bool = False,
    ) -> None:
        self._resolver, self._rules, self._tls, self._port = resolver, rules, tls, port
        self.finds_reports = finds_reports

    async def look_up(self, domain: str, known: StsState | None) -> StsFinding:
        """Return what the DNS and the policy host say. A known policy of the same id is fetched once a day."""
        finding, report_to = await asyncio.gather(self._look_up_policy(domain, known), self._look_up_reports(domain))
        return replace(finding, report_to=report_to)

    async def _look_up_reports(self, domain: str) -> str | None:
        """Return the URI for TLS reports, empty without one; None without an answer."""
        if not self.finds_reports:
            return None
        try:
            answer = await self._resolver.look_up(f"_smtp._tls.{domain}", "TXT")
        except DnsError:
            return None
        return read_report_address(answer.records)

    async def _look_up_policy(self, domain: str, known: StsState | None) -> StsFinding:
        try:
            answer = await self._resolver.look_up(f"_mta-sts.{domain}", "TXT")
        except DnsError as error:
            return StsFinding(error=f"The DNS lookup failed: {error}")
        record_id = read_record_id(answer.records)
        is_current = known and known.record_id == record_id and known.fetched_seconds < known.refresh_seconds
        if record_id is None or is_current:
            return StsFinding()
        try:
            return StsFinding(await self.fetch(domain), record_id)
        except PolicyUnavailable as error:
            return StsFinding(error=safe_text(str(error), max_length=MAX_ERROR_LENGTH), failure=error.result)

    async def fetch(self, domain: str) -> StsPolicy:
        """Return the policy of the policy host. Raises PolicyUnavailable."""
        session = GuardedSession(
            self._rules,
            resolver=self._resolver,
            timeout=ClientTimeout(total=FETCH_SECONDS),
            headers={"Accept": "text/plain", "User-Agent": "Postrider"},
            tls=self._tls or verified_tls(),
        )
        try:
            async with asyncio.timeout(FETCH_SECONDS):
                url = await session.check(f"https://mta-sts.{domain}:{self._port}/.well-known/mta-sts.txt")
                async with session.client.get(url, allow_redirects=False) as response:
                    return await _read_policy(response)
        except TimeoutError as error:
            raise PolicyUnavailable("The policy host did not answer in time.") from error
        except InvalidPolicy as error:
            raise PolicyUnavailable(str(error), TlsResult.STS_INVALID) from error
        except ClientSSLError as error:
            text = f"The policy cannot be fetched: {type(error).__name__}: {error}"
            raise PolicyUnavailable(text, TlsResult.STS_CERTIFICATE) from error
        except (TargetRefused, NoAddress, DnsError, ClientError, OSError) as error:
            raise PolicyUnavailable(f"The policy cannot be fetched: {type(error).__name__}: {error}") from error
        finally:
            await session.close()


class StsPolicies:
    """The policies of domains in this process. Belongs to one event loop."""

    def __init__(self, lookup: StsLookup, store: StsStore, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._lookup, self._store, self._clock = lookup, store, clock
        self._cache: OrderedDict[str, tuple[float, StsState]] = OrderedDict()
        self._asking: dict[str, asyncio.Future[StsState]] = {}

    @property
    def finds_reports(self) -> bool:
        """Whether domains count that ask for TLS reports."""
        return self._lookup.finds_reports

    async def find(self, domain: str, *, tlsa: Sequence[str] = ()) -> StsState:
        """Return what is known about a domain. Raises LeaseLost if the database does not answer.

        tlsa: the DANE records of its mail hosts, as texts.
        """
        cached = self._cache.get(domain)
        if cached and self._clock() < cached[0]:
            return cached[1]
        asking = self._asking.get(domain)
        if asking is None:
            # All messages to the domain wait for the same answer.
            asking = self._asking[domain] = asyncio.ensure_future(self._ask(domain, tuple(tlsa[:MAX_TLSA])))
            asking.add_done_callback(lambda _: self._asking.pop(domain))
        return await asyncio.shield(asking)

    async def _ask(self, domain: str, tlsa: tuple[str, ...]) -> StsState:
        known = await self._store.read(domain)
        if known is None or known.fresh_seconds <= 0:
            finding = await self._lookup.look_up(domain, known)
            known = await self._store.save(domain, replace(finding, tlsa=tlsa))
        self._cache[domain] = self._clock() + known.fresh_seconds, known
        self._cache.move_to_end(domain)
        if len(self._cache) > MAX_CACHED_DOMAINS:
            self._cache.popitem(last=False)
        return known


async def _read_policy(response: ClientResponse) -> StsPolicy:
    """Return the policy in a response (section 3.3). Raises PolicyUnavailable, InvalidPolicy and ClientError."""
    if response.status != 200:
        raise PolicyUnavailable(f"The policy host answered {response.status}.")
    if response.content_type != "text/plain":
        text = f"The policy has the type {response.content_type}, not text/plain."
        raise PolicyUnavailable(text, TlsResult.STS_INVALID)
    body = await read_at_most(response.content, MAX_POLICY_BYTES)
    if body is None:
        raise PolicyUnavailable(f"The policy has more than {MAX_POLICY_BYTES // 1024} KiB.", TlsResult.STS_INVALID)
    return parse_policy(body)
