"""Services of sending domains: register, delete, rotate keys, and check a From domain."""

import base64
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from core.api.errors import NotFound, Problem
from core.lib.coded_texts import CodedText
from core.lib.ids import to_uuid
from core.lib.sql import run
from core.lib.ttl_cache import TTLCache
from core.workspaces.audit import AuditAction, record_action
from core.workspaces.errors import DomainNotAllowed
from core.workspaces.key_limits import KeyLimits
from core.workspaces.models import Workspace
from domains.errors import DomainAlreadyExists, DomainNotRegistered, DomainNotVerified
from domains.models import SENDING_STATUSES, DkimKey, Domain
from domains.plan_limit import refuse_registration
from domains.receiving.services import set_receiving
from domains.record_checks.spf_syntax import InvalidSpf, SpfMechanism, find_uncovered, parse_mechanisms, parse_spf
from domains.records import list_missing_records
from domains.tracking_hosts import remove_tracking_host, retire_tracking_host, set_tracking_host

KEY_BITS = 2048
SELECTOR_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"
STATUSES = """
SELECT name, status, open_tracking, click_tracking FROM domains_domain WHERE workspace_id = %s AND name = ANY(%s)
"""


@dataclass(frozen=True)
class SendingDomain:
    """A domain that is allowed to send, and the tracking of its emails by default."""

    open_tracking: bool
    click_tracking: bool


# A deleted domain is rejected within a second, like a revoked API key.
sending_domain_cache: TTLCache[tuple[str, str], SendingDomain] = TTLCache()
# The columns of a domain that its owner sets, and their names in the audit log.
DOMAIN_SETTINGS = {"tls": "TLS", "open_tracking": "openTracking", "click_tracking": "clickTracking"}


def register_domain(workspace: Workspace, *, name: str, changes: Mapping[str, Any] | None = None) -> Domain:
    """Register a domain (an A-label) with a new DKIM key pair.

    changes: changes of its settings, as in change_domain, whose errors it raises too.
    Raises DomainAlreadyExists, and PlanLimitReached if the plan allows no more domains.
    """
    # Before the transaction: generating two primes can take half a second.
    domain = Domain(workspace=workspace, name=name)
    key = new_dkim_key(domain, selector=new_selector())
    with transaction.atomic():
        # With the current plan: the workspace of an API key is up to a second old.
        _check_registration(Workspace.objects.select_for_update().get(id=workspace.id), name)
        domain.save(force_insert=True)
        key.save(force_insert=True)
        record_action(workspace, AuditAction.DOMAIN_ADDED, about=name)
        if changes:
            change_domain(domain, changes)
    domain.refresh_from_db()
    return domain


def delete_domain(domain: Domain) -> None:
    """Delete a domain with its keys. Email that is not sent yet fails with domain_not_registered.

    The links in sent emails work for some more time (domains.tracking_hosts).
    """
    with transaction.atomic():
        # Lock the domain before its keys, in the same order as record_check.
        Domain.objects.select_for_update().filter(id=domain.id).first()
        retire_tracking_host(domain)
        if domain.delete()[0]:
            record_action(domain.workspace, AuditAction.DOMAIN_DELETED, about=domain.name)


@transaction.atomic
def change_domain(domain: Domain, changes: Mapping[str, Any]) -> Domain:
    """Change a domain and return it; emails claimed afterwards follow the change.

    changes: tls, open_tracking, click_tracking, receiving, and tracking: a mapping with the subdomain of its host, or
    None. Raises TrackingHostTaken, TrackingUnavailable, ReceivingDomainTaken, ReceivingUnavailable, and NotFound if the
    domain was deleted in the meantime.
    """
    locked = Domain.objects.select_for_update(no_key=True).filter(id=domain.id).first()
    if locked is None:
        raise NotFound
    for name in DOMAIN_SETTINGS:
        if name in changes and changes[name] != getattr(locked, name):
            _change_setting(locked, name, value=changes[name])
    if "tracking" in changes:
        _change_tracking_host(locked, changes["tracking"])
    if "receiving" in changes:
        set_receiving(locked, is_enabled=changes["receiving"])
    sending_domain_cache.clear()
    return locked


def _change_setting(domain: Domain, name: str, *, value: str | bool) -> None:
    Domain.objects.filter(id=domain.id).update(**{name: value})
    words = [f"{DOMAIN_SETTINGS[name]}={str(value).lower()}"]
    about = CodedText("workspaces.change", about=domain.name, words=words)
    if name == "tls":
        about = CodedText("workspaces.tls_change", about=domain.name, words=[value])
    record_action(domain.workspace, AuditAction.DOMAIN_CHANGED, about=about)


def _change_tracking_host(domain: Domain, tracking: Mapping[str, str] | None) -> None:
    if tracking is None:
        remove_tracking_host(domain)
    else:
        set_tracking_host(domain, subdomain=tracking["subdomain"])


def rotate_dkim_key(domain: Domain) -> None:
    """Create a new key, which signs once it is found in DNS; the old key signs until then.

    Does nothing while a new key is not published, so repeating the call is safe.
    """
    if _is_waiting_for_key(domain):
        return
    key = new_dkim_key(domain, selector=new_selector())
    with transaction.atomic():
        locked = Domain.objects.select_for_update(no_key=True).filter(id=domain.id)
        if not locked.exists() or _is_waiting_for_key(domain):
            return
        key.save(force_insert=True)
        Domain.objects.filter(id=domain.id).update(watched_since=Now(), check_due_at=Now())
        record_action(domain.workspace, AuditAction.DOMAIN_ROTATED, about=domain.name)


def new_dkim_key(domain: Domain, *, selector: str) -> DkimKey:
    """Return a new key pair, RSA with 2048 bits (RFC 8301), sealed and not saved."""
    private = rsa.generate_private_key(public_exponent=65_537, key_size=KEY_BITS)
    return sealed_dkim_key(domain, selector=selector, private=private)


def new_selector() -> str:
    """Return a random selector, so that two workspaces with the same domain publish at different names."""
    return "pr-" + "".join(secrets.choice(SELECTOR_ALPHABET) for _ in range(8))


def sealed_dkim_key(domain: Domain, *, selector: str, private: rsa.RSAPrivateKey) -> DkimKey:
    """Return a key pair sealed into a new row, not saved."""
    public = private.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    key = DkimKey(domain=domain, selector=selector, public_key=base64.b64encode(public).decode())
    return key.with_private_key(pem)


def is_dns_optional() -> bool:
    """Return whether a domain without DNS records can send: all emails stay in the built-in inbox."""
    return settings.DELIVERY_TRANSPORT == "inbox" and settings.SENDING_DOMAIN_POLICY == "registered"


def find_sending_domains(
    workspace: Workspace, names: Collection[str], limits: KeyLimits
) -> dict[str, SendingDomain | Problem]:
    """Return the domains by name, or the problems of sending from them, in one query.

    Problems are DomainNotAllowed, DomainNotRegistered, and DomainNotVerified if SENDING_DOMAIN_POLICY requires it.
    """
    found: dict[str, SendingDomain | Problem] = {
        name: domain for name in names if (domain := sending_domain_cache.get((workspace.id, name)))
    }
    found |= {name: _not_allowed(limits, name) for name in names if limits.domains and name not in limits.domains}
    unknown = [name for name in names if name not in found]
    if not unknown:
        return found
    rows = run(STATUSES, [to_uuid(workspace.id, prefix="ws_"), unknown])
    statuses = {name: status for name, status, *_ in rows}
    registered = {name: SendingDomain(*tracking) for name, _, *tracking in rows}
    for name in unknown:
        found[name] = _domain_problem(workspace, name, statuses.get(name)) or registered[name]
        if found[name] is registered.get(name):
            sending_domain_cache.set((workspace.id, name), registered[name])
    return found


def _not_allowed(limits: KeyLimits, name: str) -> DomainNotAllowed:
    detail = f"This API key can send from {', '.join(limits.domains)} only, not from {name}. Use another key."
    return DomainNotAllowed(detail, field="from", domain=name, allowedDomains=list(limits.domains))


def _domain_problem(workspace: Workspace, name: str, status: str | None) -> Problem | None:
    if status is None:
        return DomainNotRegistered(CodedText("domains.not_registered", name=name), domain=name)
    if settings.SENDING_DOMAIN_POLICY == "verified" and status not in SENDING_STATUSES:
        return _not_verified(workspace, name)
    return None


def _not_verified(workspace: Workspace, name: str) -> DomainNotVerified:
    domain = workspace.domains.prefetch_related("dkim_keys").get(name=name)
    missing = [
        {field: getattr(record, field) for field in ("record", "type", "fqdn", "value", "status")}
        for record in list_missing_records(domain)
    ]
    return DomainNotVerified(CodedText("domains.not_verified", name=name), domain=name, missingRecords=missing)


def _is_waiting_for_key(domain: Domain) -> bool:
    return domain.dkim_keys.filter(seen_at=None, retired_at=None).exists()


def _check_registration(workspace: Workspace, name: str) -> None:
    if workspace.domains.filter(name=name).exists():
        raise DomainAlreadyExists(CodedText("domains.already_registered", name=name))
    refuse_registration(workspace)


def find_unaligned(domains: QuerySet[Domain], *, spf: str) -> list[str]:
    """Return the names of domains that may send, and whose SPF record lacks a mechanism; spf: as SPF_MECHANISMS.

    A domain that was not checked since the upgrade to this version is left out.
    """
    required = parse_mechanisms(spf)
    if not required:
        return []
    checked = domains.filter(status__in=SENDING_STATUSES).exclude(spf_passing=None)
    rows = checked.values_list("name", "spf_passing").distinct().order_by("name")
    return [name for name, passing in rows if find_uncovered(required, published=_parse_passing(passing or ""))]


def _parse_passing(passing: str) -> tuple[SpfMechanism, ...]:
    try:
        return parse_spf(f"v=spf1 {passing}").mechanisms
    except InvalidSpf:
        return ()
