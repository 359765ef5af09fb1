"""Domain check queue work: claim due checks, query DNS without a transaction, and record the results."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from core.lib.network.public_suffixes import organizational_domain
from core.lib.network.resolver import Resolver
from core.lib.worker.failpoints import failpoint
from core.lib.worker.leases import Lease
from core.lib.worker.once import once
from core.lib.worker.processor import ClaimResult, QueueProcessor
from core.lib.worker.unused_claims import UnusedClaims
from domains.check_queue.claims import CheckClaim, claim_due_checks, make_due, record_check
from domains.check_queue.simulated_dns import SimulatedResolver, is_simulated
from domains.models import Domain
from domains.receiving.services import expected_mx
from domains.record_checks.check_all import ExpectedRecords, check_domain_records
from domains.record_checks.dns_cache import ANSWER_SECONDS
from domains.record_checks.expected_host import ExpectedHost
from domains.record_checks.receiving import ExpectedMx, check_receiving
from domains.record_checks.spf_syntax import parse_mechanisms
from domains.record_checks.tracking_host import check_tracking_host
from domains.record_checks.zone import ExpectedZone, find_zone
from domains.records import list_records
from domains.signing_identities import return_path_name
from domains.tracking_hosts import expected_host

log = logging.getLogger("postrider.domains")

KIND = "domains"
# Checks mostly wait for DNS: many run at once, so that a few silent name servers do not delay the others.
SESSIONS = 64
TRY_SECONDS = 1.5
# A request waits at most five seconds for its domain check, also without Redis.
FALLBACK_SECONDS = 2.0

Expected = ExpectedRecords | ExpectedZone | ExpectedHost | ExpectedMx


@dataclass(frozen=True)
class DomainCheckJob:
    """A claimed check.

    expected: of the domain and its zone, and of its tracking host and MX records, if it has them.
    simulated: answers the lookups of a trial in place of name servers.
    """

    claim: CheckClaim
    expected: tuple[Expected, ...]
    simulated: SimulatedResolver | None = None


@dataclass(frozen=True)
class DomainCheckResult:
    """The results of a claimed check; none if the check crashed: the domain is due again after five minutes."""

    claim: CheckClaim
    results: tuple[Any, ...]


# A row for each subject of a check: the domain, its zone, its tracking host, its MX records.
CHECKS: dict[type, Callable[[Any, Any], Awaitable[Any]]] = {
    ExpectedRecords: check_domain_records,
    ExpectedZone: find_zone,
    ExpectedHost: check_tracking_host,
    ExpectedMx: check_receiving,
}


class DomainCheckQueueWork:
    """The due domain checks, as a core.lib.worker.processor.QueueWork."""

    kind = KIND
    sessions = SESSIONS
    is_repeatable = True

    def __init__(self) -> None:
        self.unused: UnusedClaims[CheckClaim] = UnusedClaims(make_due)

    def claim(self, limit: int) -> ClaimResult[DomainCheckJob]:
        with self.unused.claiming() as claims:
            claims.extend(claim_due_checks(limit))
            if not claims:
                return ClaimResult([], has_leased=False)
            failpoint("domains.after_claim")
            return ClaimResult(_load_jobs(claims), has_leased=True)

    async def perform(self, job: DomainCheckJob, lease: Lease) -> DomainCheckResult:
        resolver = job.simulated or Resolver(
            settings.DNS_SERVERS, lifetime_seconds=ANSWER_SECONDS, try_seconds=TRY_SECONDS
        )
        results = await asyncio.gather(*(CHECKS[type(expected)](expected, resolver) for expected in job.expected))
        return DomainCheckResult(job.claim, tuple(results))

    def crash_result(self, job: DomainCheckJob, error: BaseException) -> DomainCheckResult:
        log.error("a domain check failed", extra={"data": {"domain": job.claim.domain_id}}, exc_info=error)
        return DomainCheckResult(job.claim, ())

    def record(self, results: Sequence[DomainCheckResult]) -> None:
        for check in results:
            if check.results:
                record_check(check.claim, *check.results)

    def renew(self, claims: Collection[CheckClaim]) -> Collection[CheckClaim]:
        """Renew nothing: a check takes 5 seconds, or 14 with a tracking host, and its claim is valid for 5 minutes."""
        return claims


def _load_jobs(claims: Sequence[CheckClaim]) -> list[DomainCheckJob]:
    rows = Domain.objects.select_related("tracking_host", "receiving_domain").prefetch_related("dkim_keys")
    domains = rows.in_bulk([claim.domain_id for claim in claims])
    found = [(claim, domain) for claim in claims if (domain := domains.get(claim.domain_id))]
    return [DomainCheckJob(claim, _expected(domain), _simulated(domain)) for claim, domain in found]


def _simulated(domain: Domain) -> SimulatedResolver | None:
    return SimulatedResolver(domain.name, list_records(domain)) if is_simulated(domain.name) else None


def _expected(domain: Domain) -> tuple[Expected, ...]:
    records = expected_records(domain)
    others = (expected_host(domain), expected_mx(domain))
    zone = ExpectedZone(domain.name, records.organizational_domain)
    return (records, zone, *(other for other in others if other))


def expected_records(domain: Domain) -> ExpectedRecords:
    """Return the records that a domain should have published."""
    return ExpectedRecords(
        domain=domain.name,
        organizational_domain=organizational_domain(domain.name),
        keys={key.selector: key.public_key for key in domain.dkim_keys.all()},
        mechanisms=parse_mechanisms(settings.SPF_MECHANISMS),
        return_path=return_path_name(domain.name),
        return_path_target=settings.RETURN_PATH_DOMAIN.lower().rstrip("."),
    )


@once
def domain_checks_processor() -> QueueProcessor[DomainCheckJob, DomainCheckResult]:
    """Return this process's queue processor for domain checks."""
    return QueueProcessor(DomainCheckQueueWork(), fallback_seconds=FALLBACK_SECONDS)
