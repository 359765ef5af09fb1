"""Receiving domains: whose email comes here, its checks and its end (docs/decisions/0226)."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from core.lib.coded_texts import CodedText
from core.lib.network.public_suffixes import organizational_domain
from core.lib.ttl_cache import TTLCache
from core.workspaces.audit import AuditAction, record_action
from core.workspaces.models import Workspace
from domains.errors import ReceivingDomainTaken, ReceivingUnavailable
from domains.lifecycle import FAILURE_RULES, MIN_ABSENCES, CheckedDomain
from domains.models import Domain, ReceivingDomain
from domains.names import InvalidDomainName, to_a_label
from domains.record_checks.receiving import ExpectedMx
from domains.record_checks.results import ReceivingCheck, RecordCheck, RecordStatus, VerificationResult, findings_of

ReceivingStatus = ReceivingDomain.ReceivingStatus

# (workspace id, domain): whether the workspace receives for it; a change is in force within a second.
active_cache: TTLCache[tuple[str, str], bool] = TTLCache()


def mail_hosts() -> tuple[str, ...]:
    """Return the names of this service in MX records: RECEIVING_MX, or EHLO_NAME if it is a complete name."""
    if settings.RECEIVING_MX:
        return tuple(settings.RECEIVING_MX)
    try:
        return (to_a_label(settings.EHLO_NAME),)
    except InvalidDomainName:
        return ()


def set_receiving(domain: Domain, *, is_enabled: bool) -> None:
    """Begin or end to receive the email of a domain. Within a transaction.

    Raises ReceivingDomainTaken, and ReceivingUnavailable if this service has no name or the domain is one of its own.
    """
    receiving = ReceivingDomain.objects.filter(domain=domain).first()
    if (receiving is not None) == is_enabled:
        return
    if receiving:
        receiving.delete()
    else:
        _refuse_unavailable(domain.name)
        if _is_taken(domain):
            raise ReceivingDomainTaken(CodedText("domains.receiving_taken", name=domain.name), domain=domain.name)
        ReceivingDomain.objects.create(domain=domain, workspace=domain.workspace, name=domain.name)
        Domain.objects.filter(id=domain.id).update(watched_since=Now(), check_due_at=Now())
    active_cache.clear()
    words = [f"receiving={str(is_enabled).lower()}"]
    about = CodedText("workspaces.change", about=domain.name, words=words)
    record_action(domain.workspace, AuditAction.DOMAIN_CHANGED, about=about)


@transaction.atomic
def move_receiving(receiving: ReceivingDomain) -> None:
    """Take a name from the workspace that receives for it, so that the next check can give it to another one."""
    ReceivingDomain.objects.filter(name=receiving.name).exclude(id=receiving.id).update(
        status=ReceivingStatus.FAILED, proven_at=None
    )
    Domain.objects.filter(id=receiving.domain_id).update(watched_since=Now(), check_due_at=Now())
    active_cache.clear()
    about = CodedText("workspaces.change", about=receiving.name, words=["receiving=moved"])
    record_action(receiving.workspace, AuditAction.DOMAIN_CHANGED, about=about)


def is_received_by(workspace: Workspace, name: str) -> bool:
    """Return whether a workspace receives the email of a domain, at most a second ago."""
    cached = active_cache.get((workspace.id, name))
    if cached is None:
        cached = ReceivingDomain.objects.filter(workspace=workspace, name=name, status=ReceivingStatus.ACTIVE).exists()
        active_cache.set((workspace.id, name), cached)
    return cached


def reply_domain(workspace: Workspace, *, from_domain: str) -> str:
    """Return the domain of reply addresses: that of From if it is received, else RECEIVING_DOMAIN, if any."""
    return from_domain if is_received_by(workspace, from_domain) else str(settings.RECEIVING_DOMAIN)


def expected_mx(domain: Domain) -> ExpectedMx | None:
    """Return the records that a check of the domain has to find; None if it does not receive."""
    receiving = domain.receiving
    if receiving is None:
        return None
    return ExpectedMx(receiving.id, domain.name, organizational_domain(domain.name), mail_hosts())


def record_receiving_check(checked: CheckedDomain, check: ReceivingCheck) -> None:
    """Record the check of a receiving domain, in the transaction of its domain's check.

    Only the DKIM record shows that the owner of the name knows the workspace: the MX record is the same for all.
    """
    domain, now = checked.domain, checked.now
    rows = ReceivingDomain.objects.select_for_update(no_key=True)
    receiving = rows.filter(id=check.receiving_id, domain=domain).first()
    if receiving is None:
        return
    try:
        with transaction.atomic():
            _save_check(receiving, replace(check, owner=_check_owner(domain, checked.result)), now)
    except IntegrityError:
        # Another workspace has proven the name at the same time.
        _save_check(receiving, replace(check, owner=_taken(domain)), now)
    active_cache.clear()


def next_status(
    receiving: ReceivingDomain, check: ReceivingCheck, now: datetime
) -> tuple[ReceivingDomain.ReceivingStatus, Mapping[str, Any]]:
    """Return the status after a check, and the changes of its absences.

    An active domain fails as a verified one does: after three days without its records. Nothing is received for one
    whose name another workspace has.
    """
    decisive, before = check.decisive.status, ReceivingStatus(receiving.status)
    if decisive is RecordStatus.VALID:
        return ReceivingStatus.ACTIVE, {"missing_since": None, "absences": 0}
    if decisive is RecordStatus.UNKNOWN:
        return before, {}
    missing_since, absences = receiving.missing_since or now, min(receiving.absences + 1, 1000)
    changes = {"missing_since": missing_since, "absences": absences}
    if before is ReceivingStatus.ACTIVE:
        limit = FAILURE_RULES[Domain.DomainStatus.VERIFIED].after
        has_failed = now - missing_since >= limit and absences >= MIN_ABSENCES
        return ReceivingStatus.FAILED if has_failed else before, changes
    is_waiting = decisive is RecordStatus.MISSING and before is ReceivingStatus.PENDING
    return ReceivingStatus.PENDING if is_waiting else ReceivingStatus.FAILED, changes


def _refuse_unavailable(name: str) -> None:
    if not mail_hosts():
        raise ReceivingUnavailable(CodedText("domains.receiving_unavailable"))
    own = {settings.RETURN_PATH_DOMAIN.lower(), settings.RECEIVING_DOMAIN, *mail_hosts()} - {""}
    if name in own:
        raise ReceivingUnavailable(CodedText("domains.host_of_service", name=name))


def _is_taken(domain: Domain) -> bool:
    proven = ReceivingDomain.objects.filter(name=domain.name, proven_at__isnull=False)
    return proven.exclude(domain=domain).exists()


def _check_owner(domain: Domain, result: VerificationResult) -> RecordCheck:
    statuses = {check.status for check in result.keys.values()}
    if RecordStatus.VALID not in statuses:
        status = RecordStatus.UNKNOWN if RecordStatus.UNKNOWN in statuses else RecordStatus.MISSING
        return RecordCheck(status, error=CodedText("domains.receiving_unverified", name=domain.name))
    return _taken(domain) if _is_taken(domain) else RecordCheck(RecordStatus.VALID)


def _taken(domain: Domain) -> RecordCheck:
    return RecordCheck(RecordStatus.INVALID, error=CodedText("domains.receiving_taken", name=domain.name))


def _save_check(receiving: ReceivingDomain, check: ReceivingCheck, now: datetime) -> None:
    status, absences = next_status(receiving, check, now)
    proven_at = receiving.proven_at or now if status is ReceivingStatus.ACTIVE else None
    reporting = {} if check.tls_reporting is None else {"tls_reporting": check.tls_reporting}
    ReceivingDomain.objects.filter(id=receiving.id).update(
        status=status,
        proven_at=proven_at,
        **reporting,
        **findings_of(check),
        **absences,
    )
