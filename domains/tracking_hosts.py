"""Tracking hosts: the host name of the links in a domain's emails, its checks and its end (docs/decisions/0205)."""

import hashlib
from dataclasses import replace
from datetime import timedelta
from urllib.parse import urlsplit

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Count, F
from django.db.models.functions import Least, Now
from django.http.request import validate_host

from core.lib.coded_texts import CodedText
from core.lib.keyring import key_named
from core.lib.network.public_suffixes import organizational_domain
from core.lib.sql import run
from core.workspaces.audit import AuditAction, record_action
from domains.errors import TrackingHostTaken, TrackingUnavailable
from domains.lifecycle import CheckedDomain
from domains.models import SENDING_STATUSES, Domain, TrackingHost
from domains.names import InvalidDomainName, to_a_label
from domains.record_checks.expected_host import PROOF_PATH, ExpectedHost
from domains.record_checks.results import HostCheck, RecordCheck, RecordStatus, findings_of

HostStatus = TrackingHost.HostStatus

# How long the links in emails work after the host or its domain is deleted.
RETIREMENT = timedelta(days=30)
RECHECK = timedelta(minutes=1)
# Names of a workspace that may get their first certificate.
MAX_NEW_NAMES_PER_MINUTE = 10
LOCK = "SELECT pg_advisory_xact_lock(hashtext('tracking hosts'), hashtext(%s))"


def proofs() -> list[str]:
    """Return the values that this installation answers at PROOF_PATH: one for each entry of APP_KEYS, newest first."""
    return [
        hashlib.sha256(key_named(key_id, "tracking-host-proof").secret).hexdigest() for key_id, _ in settings.APP_KEYS
    ]


def links_url(host: str) -> str:
    """Return the start of the links at a tracking host. The proxy listens at the port of PUBLIC_URL."""
    port = urlsplit(settings.PUBLIC_URL).port
    return f"https://{host}:{port}" if port else f"https://{host}"


def set_tracking_host(domain: Domain, *, subdomain: str) -> None:
    """Give a domain a host for its links, which new emails use once it is proven. Within a transaction.

    Raises TrackingHostTaken, and TrackingUnavailable if this service has no name or the host is one of its names.
    """
    name = f"{subdomain}.{domain.name}"
    current = TrackingHost.objects.filter(domain=domain).first()
    if current and current.name == name:
        return
    _refuse_unavailable(name)
    if _is_taken(name, domain):
        raise TrackingHostTaken(CodedText("domains.host_taken", name=name), host=name)
    retire_tracking_host(domain)
    TrackingHost.objects.create(domain=domain, workspace=domain.workspace, name=name)
    Domain.objects.filter(id=domain.id).update(watched_since=Now(), check_due_at=Now())
    about = CodedText("workspaces.tracking_host_change", about=domain.name, name=name)
    record_action(domain.workspace, AuditAction.DOMAIN_CHANGED, about=about)


def remove_tracking_host(domain: Domain) -> None:
    """Return the links of new emails to PUBLIC_URL. Within a transaction."""
    if retire_tracking_host(domain):
        about = CodedText("workspaces.tracking_host_removed", about=domain.name)
        record_action(domain.workspace, AuditAction.DOMAIN_CHANGED, about=about)


def retire_tracking_host(domain: Domain) -> bool:
    """End the host of a domain; return whether it had one. One that was never seen in DNS is deleted."""
    hosts = TrackingHost.objects.filter(domain=domain)
    deleted, _ = hosts.filter(seen_at=None, proven_at=None).delete()
    return bool(hosts.update(domain=None, retired_at=Now()) or deleted)


def count_tracking_hosts() -> dict[str, int]:
    """Return the number of hosts that domains have, by status."""
    rows = TrackingHost.objects.filter(retired_at=None).values_list("status").annotate(count=Count("*"))
    return dict.fromkeys(HostStatus.values, 0) | dict(rows)


def delete_retired_hosts() -> None:
    """Delete the hosts whose links no longer work."""
    TrackingHost.objects.filter(retired_at__lt=Now() - RETIREMENT).delete()


def expected_host(domain: Domain) -> ExpectedHost | None:
    """Return the host that a check of the domain has to prove; None without one."""
    host = domain.links_host
    if host is None:
        return None
    return ExpectedHost(
        id=host.id,
        name=host.name,
        domain=domain.name,
        organizational_domain=organizational_domain(domain.name),
        target=settings.TRACKING_HOST,
        authority=settings.TRACKING_CA,
        url=f"{links_url(host.name)}{PROOF_PATH}",
        proofs=frozenset(proofs()),
        allow_private=settings.WEBHOOK_ALLOW_PRIVATE_NETWORKS,
    )


def record_host_check(checked: CheckedDomain, check: HostCheck) -> None:
    """Record the check of a tracking host, in the transaction of its domain's check; nothing if it has ended since."""
    domain = checked.domain
    host = TrackingHost.objects.select_for_update(no_key=True).filter(id=check.host_id, domain=domain).first()
    if host is None:
        return
    try:
        with transaction.atomic():
            _save_check(host, replace(check, owner=_check_owner(host, domain, checked.after.status)))
    except IntegrityError:
        # Another workspace has proven the name at the same time.
        _save_check(host, replace(check, owner=_taken(host)))
    if host.status == HostStatus.ACTIVE and check.decisive.status not in {RecordStatus.VALID, RecordStatus.UNKNOWN}:
        # A fault that passes is noticed soon.
        soon = Least(F("check_due_at"), Now() + RECHECK)
        Domain.objects.filter(id=domain.id).update(watched_since=Now(), check_due_at=soon)


def next_status(host: TrackingHost, check: HostCheck) -> TrackingHost.HostStatus:
    """Return the status after a check. The first refutation ends an active host; a failed lookup changes nothing."""
    return {
        RecordStatus.VALID: HostStatus.ACTIVE,
        RecordStatus.UNKNOWN: HostStatus(host.status),
        RecordStatus.MISSING: HostStatus.FAILED if host.proven_at else HostStatus.PENDING,
        RecordStatus.INVALID: HostStatus.FAILED,
    }[check.decisive.status]


def _refuse_unavailable(name: str) -> None:
    try:
        to_a_label(settings.TRACKING_HOST)
    except InvalidDomainName as error:
        raise TrackingUnavailable(CodedText("domains.tracking_unavailable")) from error
    try:
        to_a_label(name)
    except InvalidDomainName as error:
        raise TrackingUnavailable(str(error)) from error
    own = (*settings.ALLOWED_HOSTS, settings.TRACKING_HOST, settings.RETURN_PATH_DOMAIN)
    if validate_host(name, own):
        raise TrackingUnavailable(CodedText("domains.host_of_service", name=name))


def _is_taken(name: str, domain: Domain) -> bool:
    proven = TrackingHost.objects.filter(name=name, proven_at__isnull=False, retired_at=None)
    return proven.exclude(domain=domain).exists()


def _check_owner(host: TrackingHost, domain: Domain, status: str) -> RecordCheck:
    """Return whether a workspace may use a host.

    Only the DKIM record shows that the name's owner knows the workspace: the CNAME is the same for all workspaces.
    """
    if status not in SENDING_STATUSES:
        return RecordCheck(RecordStatus.MISSING, error=CodedText("domains.host_unverified", name=domain.name))
    return _taken(host) if _is_taken(host.name, domain) else RecordCheck(RecordStatus.VALID)


def _taken(host: TrackingHost) -> RecordCheck:
    return RecordCheck(RecordStatus.INVALID, error=CodedText("domains.host_taken", name=host.name))


def _save_check(host: TrackingHost, check: HostCheck) -> None:
    TrackingHost.objects.filter(id=host.id).update(
        status=next_status(host, check),
        **findings_of(check),
        seen_at=_seen_at(host, check.name),
        proven_at=host.proven_at or (Now() if next_status(host, check) is HostStatus.ACTIVE else None),
    )


def _seen_at(host: TrackingHost, name: RecordCheck) -> object:
    """Return the update of seen_at. A new name of a workspace with too many waits for the next check."""
    if host.seen_at or name.status is not RecordStatus.VALID:
        return host.seen_at if name.status in {RecordStatus.VALID, RecordStatus.UNKNOWN} else None
    run(LOCK, [host.workspace_id])
    new = TrackingHost.objects.filter(workspace=host.workspace_id, seen_at__gt=Now() - timedelta(minutes=1))
    return Now() if new.count() < MAX_NEW_NAMES_PER_MINUTE else None
