"""Check domains: one that its owner asks for, or all that are due. Claim, ask the DNS, write down."""

import asyncio
import logging
import time
from collections.abc import Sequence

from django.conf import settings

from domains.check_claims import CheckClaim, claim_check, claim_due, record_check
from domains.models import Domain
from domains.names import organisational_domain
from domains.record_checks.check_all import Expected, check
from domains.record_checks.dns_cache import ANSWER_SECONDS
from domains.record_checks.results import VerificationResult
from domains.record_checks.spf import parse_mechanisms
from domains.signing_identities import return_path_name
from lib.resolver import Resolver
from lib.worker.failpoints import failpoint

log = logging.getLogger("postrider.domains")

AT_ONCE = 20
TRY_SECONDS = 1.5
SWEEP_SECONDS = 45.0


def verify_domain(domain: Domain) -> None:
    """Check a domain now, within five seconds; its row says what was seen.

    Asked again while it is being checked, nothing is done. Raises RateLimitExceeded where too many domains of the
    workspace are being checked.
    """
    ticket = claim_check(domain)
    if ticket:
        _run([ticket])


def verify_due_domains() -> None:
    """Check the domains that are due, for less than a minute; what is left is due for the next sweep."""
    end = time.monotonic() + SWEEP_SECONDS
    while time.monotonic() < end and (tickets := claim_due(AT_ONCE)):
        failpoint("domains.after_claim")
        _run(tickets)


def _run(tickets: Sequence[CheckClaim]) -> None:
    domains = Domain.objects.filter(id__in=[ticket.domain_id for ticket in tickets]).prefetch_related("dkim_keys")
    expected = {domain.id: expected_of(domain) for domain in domains}
    there = [ticket for ticket in tickets if ticket.domain_id in expected]
    sights = asyncio.run(_check_all([expected[ticket.domain_id] for ticket in there]))
    for ticket, sight in zip(there, sights, strict=True):
        if isinstance(sight, VerificationResult):
            record_check(ticket, sight)
            continue
        log.error("a domain check broke", extra={"data": {"domain": ticket.domain_id}}, exc_info=sight)


async def _check_all(expected: Sequence[Expected]) -> list[VerificationResult | BaseException]:
    resolver = Resolver(settings.DNS_SERVERS, lifetime_seconds=ANSWER_SECONDS, try_seconds=TRY_SECONDS)
    return await asyncio.gather(*(check(one, resolver) for one in expected), return_exceptions=True)


def expected_of(domain: Domain) -> Expected:
    """Return what the DNS of a domain should say by now."""
    return Expected(
        domain=domain.name,
        organisational=organisational_domain(domain.name),
        keys={key.selector: key.public_key for key in domain.dkim_keys.all()},
        mechanisms=parse_mechanisms(settings.SPF_MECHANISMS),
        return_path=return_path_name(domain.name),
        return_path_target=settings.RETURN_PATH_DOMAIN.lower().rstrip("."),
    )
