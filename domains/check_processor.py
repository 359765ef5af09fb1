"""Domain check queue work: claim due checks, query DNS without a transaction, and record the results."""

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.conf import settings

from domains.check_claims import CheckClaim, claim_due_checks, record_check
from domains.models import Domain
from domains.names import organizational_domain
from domains.record_checks.check_all import ExpectedRecords, check_domain_records
from domains.record_checks.dns_cache import ANSWER_SECONDS
from domains.record_checks.results import VerificationResult
from domains.record_checks.spf_syntax import parse_mechanisms
from domains.signing_identities import return_path_name
from lib.network.resolver import Resolver
from lib.worker.failpoints import failpoint
from lib.worker.leases import Lease
from lib.worker.once import once
from lib.worker.processor import ClaimResult, QueueProcessor

log = logging.getLogger("postrider.domains")

KIND = "domains"
# Checks mostly wait for DNS: many run at once, so that a few silent name servers do not delay the others.
SESSIONS = 64
TRY_SECONDS = 1.5
# A request waits at most five seconds for its domain check, also without Redis.
FALLBACK_SECONDS = 2.0


@dataclass(frozen=True)
class DomainCheckJob:
    """A claimed check and the records that the domain should have published."""

    claim: CheckClaim
    expected: ExpectedRecords


@dataclass(frozen=True)
class DomainCheckResult:
    """The result of a claimed check; None if the check crashed: the domain is due again after five minutes."""

    claim: CheckClaim
    result: VerificationResult | None


class DomainCheckQueueWork:
    """The due domain checks, as a lib.worker.processor.QueueWork."""

    kind = KIND
    sessions = SESSIONS

    def claim(self, limit: int) -> ClaimResult[DomainCheckJob]:
        claims = claim_due_checks(limit)
        if not claims:
            return ClaimResult([], has_leased=False)
        failpoint("domains.after_claim")
        domains = Domain.objects.filter(id__in=[claim.domain_id for claim in claims]).prefetch_related("dkim_keys")
        expected = {domain.id: expected_records(domain) for domain in domains}
        jobs = [DomainCheckJob(claim, expected[claim.domain_id]) for claim in claims if claim.domain_id in expected]
        return ClaimResult(jobs, has_leased=True)

    async def perform(self, job: DomainCheckJob, lease: Lease) -> DomainCheckResult:
        resolver = Resolver(settings.DNS_SERVERS, lifetime_seconds=ANSWER_SECONDS, try_seconds=TRY_SECONDS)
        return DomainCheckResult(job.claim, await check_domain_records(job.expected, resolver))

    def crash_result(self, job: DomainCheckJob, error: BaseException) -> DomainCheckResult:
        log.error("a domain check failed", extra={"data": {"domain": job.claim.domain_id}}, exc_info=error)
        return DomainCheckResult(job.claim, None)

    def record(self, results: Sequence[DomainCheckResult]) -> None:
        for check in results:
            if check.result:
                record_check(check.claim, check.result)

    def renew(self, claims: Collection[CheckClaim]) -> Collection[CheckClaim]:
        """Renew nothing: a check takes five seconds, and its claim is valid for five minutes."""
        return claims


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
