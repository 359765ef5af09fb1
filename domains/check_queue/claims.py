"""Requests and claims of domain checks, and the recording of results. A worker queries DNS in between.

Checks are numbered: a result that arrives after a newer one was recorded changes nothing.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Coalesce, Now

from core.api.errors import TooManyConcurrentRequests
from core.lib.coded_texts import CodedText, escape_controls
from core.lib.ids import from_uuid, to_uuid
from core.lib.worker import wakeup
from core.lib.worker.failpoints import failpoint
from core.lib.worker.lease_queue import Claim, LeaseQueue
from core.workspaces.audit import AuditAction, record_action
from core.workspaces.models import Workspace
from domains.lifecycle import (
    OLD_KEY_RETENTION,
    CheckedDomain,
    DomainState,
    VerificationOutcome,
    decide_outcome,
    next_interval,
    next_status,
)
from domains.models import SENDING_STATUSES, Domain, ReceivingDomain, TrackingHost
from domains.plan_limit import may_become_verified
from domains.receiving.services import record_receiving_check
from domains.record_checks.results import (
    HostCheck,
    ReceivingCheck,
    RecordCheck,
    RecordStatus,
    VerificationResult,
    findings_of,
)
from domains.record_checks.zone import ZoneCheck
from domains.tracking_hosts import record_host_check
from events.kinds import EventKind
from events.recording import NewEvent, record_events

# Limits the DNS queries that one workspace can cause at once.
MAX_CHECKS_PER_WORKSPACE = 3
CHECK_TIMEOUT = timedelta(seconds=6)
# Requested checks are claimed before periodic ones, even if many of those are late.
REQUEST_PRECEDENCE = timedelta(days=1)
# The due time moves with the claim, so that a crash only delays the check.
QUEUE = LeaseQueue(
    table="domains_domain", due_at="check_due_at", fence="checks_begun", attempts="checks_begun", lease_seconds=300
)


@dataclass(frozen=True)
class CheckClaim:
    """The right to record one check, unless a newer one is recorded."""

    domain_id: str
    number: int


def request_check(domain: Domain) -> int | None:
    """Make a domain due now and wake a worker; return the number of the check that answers the request.

    Returns None while an earlier request is being answered. Raises TooManyConcurrentRequests if too many domains of the
    workspace are being checked.
    """
    with transaction.atomic():
        Workspace.objects.select_for_update(no_key=True).get(id=domain.workspace_id)
        running = set(
            Domain.objects.filter(workspace_id=domain.workspace_id, checking_until__gt=Now()).values_list(
                "id", flat=True
            )
        )
        if domain.id in running:
            return None
        if len(running) >= MAX_CHECKS_PER_WORKSPACE:
            raise TooManyConcurrentRequests(
                CodedText("domains.too_many_checks", count=len(running)), headers={"Retry-After": "5"}
            )
        requested = Domain.objects.filter(id=domain.id)
        requested.update(
            # The claim takes a higher number; a check that is already running has a lower one.
            checks_begun=F("checks_begun") + 1,
            check_due_at=Now() - REQUEST_PRECEDENCE,
            checking_until=Now() + CHECK_TIMEOUT,
            watched_since=Now(),
        )
        transaction.on_commit(lambda: wakeup.notify("domains"))
        return requested.values_list("checks_begun", flat=True).first()


def claim_due_checks(limit: int) -> list[CheckClaim]:
    """Claim due checks. Any number of processes may run this at once."""
    return [CheckClaim(from_uuid(key, prefix="dom_"), number) for key, number, _ in QUEUE.claim_due(limit)]


def make_due(claims: Collection[CheckClaim]) -> None:
    """Make the domains of checks that did not begin due again, unless they were claimed again."""
    rows = [Claim(to_uuid(claim.domain_id, prefix="dom_"), claim.number, claim.number) for claim in claims]
    QUEUE.update_leased(rows, "check_due_at = now()")


@transaction.atomic
def record_check(
    claim: CheckClaim, result: VerificationResult, *others: ZoneCheck | HostCheck | ReceivingCheck
) -> None:
    """Record the results of a check; nothing if the domain is deleted or a newer check is recorded.

    others: the results for its zone, its tracking host and its MX records, if it has them.
    """
    workspace = _lock_workspace(claim)
    older = Domain.objects.filter(id=claim.domain_id, checks_recorded__lt=claim.number)
    domain = older.select_for_update(no_key=True, of=("self",)).annotate(clock=Now()).first()
    if domain is None:
        return
    _record_keys(domain, result)
    after = _state_after(domain, result, domain.clock, workspace)
    checked = CheckedDomain(domain, claim.number, result, after, domain.clock)
    for check in (result, *others):
        RECORDERS[type(check)](checked, check)
    failpoint("domains.before_record_commit")


def _lock_workspace(claim: CheckClaim) -> Workspace | None:
    """Lock the workspace of a domain that was never verified, so that no more become verified than its plan allows.

    Before the domain, in the same order as request_check. None for other domains, which keep their place.
    """
    unverified = Domain.objects.filter(id=claim.domain_id, verified_at=None)
    return Workspace.objects.select_for_update(no_key=True).filter(id__in=unverified.values("workspace_id")).first()


def _record_domain(checked: CheckedDomain, result: VerificationResult) -> None:
    domain, after = checked.domain, checked.after
    if after.verified_at != domain.verified_at:
        record_action(domain.workspace, AuditAction.DOMAIN_VERIFIED, about=domain.name)
    if domain.checks_begun > checked.number:
        # A newer check is due or running; its result ends the request and sets the next due time.
        after = replace(after, check_due_at=domain.check_due_at, checking_until=domain.checking_until)
    Domain.objects.filter(id=domain.id).update(
        checks_recorded=checked.number,
        last_checked_at=Now(),
        **findings_of(result),
        **({} if result.spf.status is RecordStatus.UNKNOWN else {"spf_passing": escape_controls(result.spf.passing)}),
        return_path_seen_at=_seen_at("return_path_seen_at", result.return_path),
        **vars(after),
    )
    _record_transition(domain, after.status)


def _record_zone(checked: CheckedDomain, zone: ZoneCheck) -> None:
    """Record where the records are entered. A lookup that found nothing changes nothing."""
    domain = checked.domain
    if zone.name and (zone.name, zone.provider) != (domain.zone_name, domain.dns_provider):
        Domain.objects.filter(id=domain.id).update(zone_name=zone.name, dns_provider=zone.provider)


# A row for each subject of a check: the domain, its zone, its tracking host, its MX records.
RECORDERS: dict[type, Callable[[CheckedDomain, Any], None]] = {
    VerificationResult: _record_domain,
    ZoneCheck: _record_zone,
    HostCheck: record_host_check,
    ReceivingCheck: record_receiving_check,
}


def _record_transition(domain: Domain, status: str) -> None:
    """Add an event if the domain can send again, or has failed."""
    payload = {"domainId": domain.id, "name": domain.name, "status": status}
    if status == Domain.DomainStatus.VERIFIED and domain.status not in SENDING_STATUSES:
        record_events([NewEvent(EventKind.DOMAIN_VERIFIED, workspace_id=domain.workspace_id, details=payload)])
    if status == Domain.DomainStatus.FAILED and domain.status != Domain.DomainStatus.FAILED:
        record_events([NewEvent(EventKind.DOMAIN_FAILED, workspace_id=domain.workspace_id, details=payload)])


def _state_after(domain: Domain, result: VerificationResult, now: datetime, workspace: Workspace | None) -> DomainState:
    """Return the status, the absences and the time of the next check, as the result of the newest check.

    workspace: locked, of a domain that was never verified.
    """
    outcome = decide_outcome(result)
    missing_since, absences = {
        VerificationOutcome.PASSED: (None, 0),
        VerificationOutcome.FAILED: (domain.missing_since or now, min(domain.absences + 1, 1000)),
        VerificationOutcome.UNKNOWN: (domain.missing_since, domain.absences),
    }[outcome]
    before = Domain.DomainStatus(domain.status)
    status = next_status(before, outcome, missing_for=now - (missing_since or now), absences=absences)
    is_waiting = (
        domain.dkim_keys.filter(seen_at=None, retired_at=None).exists()
        or TrackingHost.objects.filter(domain=domain).exclude(status=TrackingHost.HostStatus.ACTIVE).exists()
        or ReceivingDomain.objects.filter(domain=domain).exclude(status=ReceivingDomain.ReceivingStatus.ACTIVE).exists()
    )
    interval = next_interval(status, outcome, watched_for=now - domain.watched_since, is_waiting=is_waiting)
    is_newly_verified = status is Domain.DomainStatus.VERIFIED and before not in SENDING_STATUSES
    if is_newly_verified and workspace and not may_become_verified(domain, workspace):
        # It stays as it is, until another domain is deleted or the plan is changed.
        status, is_newly_verified = before, False
    return DomainState(
        status=status,
        verified_at=now if is_newly_verified else domain.verified_at,
        missing_since=missing_since,
        absences=absences,
        check_due_at=now + interval,
    )


def _record_keys(domain: Domain, result: VerificationResult) -> None:
    """Record which keys are published, retire the ones replaced by a newer key, and delete expired ones."""
    for selector, check in result.keys.items():
        domain.dkim_keys.filter(selector=selector).update(seen_at=_seen_at("seen_at", check))
    signing = domain.dkim_keys.exclude(seen_at=None).order_by("-created_at").first()
    if signing is None:
        return
    older = domain.dkim_keys.filter(created_at__lt=signing.created_at)
    older.filter(retired_at__lt=Now() - OLD_KEY_RETENTION).delete()
    older.filter(retired_at=None).update(retired_at=Now())
    domain.dkim_keys.filter(created_at__gte=signing.created_at).update(retired_at=None)


def _seen_at(field: str, check: RecordCheck) -> Any:
    """Return the update of a field with the time since which a record is valid: unchanged if the lookup failed."""
    values = {RecordStatus.VALID: Coalesce(F(field), Now()), RecordStatus.UNKNOWN: F(field)}
    return values.get(check.status)
