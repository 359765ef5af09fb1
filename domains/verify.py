"""Domain verification: one domain on request, or all due ones. Claim the check, query DNS, record the result."""

import asyncio
import logging
import time
from collections.abc import Sequence

from django.conf import settings

from domains.check_claims import CheckClaim, claim_check, claim_due_checks, record_check
from domains.models import Domain
from domains.names import organizational_domain
from domains.record_checks.check_all import ExpectedRecords, check_domain_records
from domains.record_checks.dns_cache import ANSWER_SECONDS
from domains.record_checks.results import VerificationResult
from domains.record_checks.spf_syntax import parse_mechanisms
from domains.signing_identities import return_path_name
from lib.resolver import Resolver
from lib.worker.failpoints import failpoint

log = logging.getLogger("postrider.domains")

BATCH_SIZE = 20
TRY_SECONDS = 1.5
SWEEP_SECONDS = 45.0


def verify_domain(domain: Domain) -> None:
    """Check a domain now, within five seconds, and record the result in its row.

    Does nothing while the domain is being checked. Raises RateLimitExceeded if too many domains of the workspace are
    being checked.
    """
    claim = claim_check(domain)
    if claim:
        _run_checks([claim])


def verify_due_domains() -> None:
    """Check the due domains for less than a minute; the rest stays due for the next run."""
    end = time.monotonic() + SWEEP_SECONDS
    while time.monotonic() < end and (claims := claim_due_checks(BATCH_SIZE)):
        failpoint("domains.after_claim")
        _run_checks(claims)


def _run_checks(claims: Sequence[CheckClaim]) -> None:
    domains = Domain.objects.filter(id__in=[claim.domain_id for claim in claims]).prefetch_related("dkim_keys")
    expected = {domain.id: expected_records(domain) for domain in domains}
    existing = [claim for claim in claims if claim.domain_id in expected]
    results = asyncio.run(_check_all([expected[claim.domain_id] for claim in existing]))
    for claim, result in zip(existing, results, strict=True):
        if isinstance(result, VerificationResult):
            record_check(claim, result)
            continue
        log.error("a domain check failed", extra={"data": {"domain": claim.domain_id}}, exc_info=result)


async def _check_all(expected: Sequence[ExpectedRecords]) -> list[VerificationResult | BaseException]:
    resolver = Resolver(settings.DNS_SERVERS, lifetime_seconds=ANSWER_SECONDS, try_seconds=TRY_SECONDS)
    return await asyncio.gather(*(check_domain_records(one, resolver) for one in expected), return_exceptions=True)


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
