"""Services of sending domains: register, delete, rotate keys, and check a From domain."""

import base64
import secrets
from collections.abc import Collection

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now

from api.errors import Problem
from domains.errors import DomainAlreadyExists, DomainNotRegistered, DomainNotVerified
from domains.models import SENDING_STATUSES, DkimKey, Domain
from domains.records import list_missing_records
from lib.coded_texts import CodedText
from lib.ids import to_uuid
from lib.sql import run
from lib.ttl_cache import TTLCache
from workspaces.audit import AuditAction, record_action
from workspaces.errors import PlanLimitReached
from workspaces.models import Workspace

KEY_BITS = 2048
SELECTOR_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"
# Domains that are allowed to send. A deleted domain is rejected within a second, like a revoked API key.
sending_domain_cache: TTLCache[tuple[str, str], bool] = TTLCache()
STATUSES = "SELECT name, status FROM domains_domain WHERE workspace_id = %s AND name = ANY(%s)"


def register_domain(workspace: Workspace, *, name: str) -> Domain:
    """Register a domain (an A-label) with a new DKIM key pair.

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
    domain.refresh_from_db()
    return domain


def delete_domain(domain: Domain) -> None:
    """Delete a domain with its keys. Email that is not sent yet fails with domain_not_registered."""
    with transaction.atomic():
        # Lock the domain before its keys, in the same order as record_check.
        Domain.objects.select_for_update().filter(id=domain.id).first()
        if domain.delete()[0]:
            record_action(domain.workspace, AuditAction.DOMAIN_DELETED, about=domain.name)


def set_tls_policy(domain: Domain, *, tls: str) -> None:
    """Set whether emails of the domain require TLS, from the next claim on."""
    with transaction.atomic():
        if Domain.objects.filter(id=domain.id).exclude(tls=tls).update(tls=tls):
            about = CodedText("workspaces.tls_change", about=domain.name, words=[tls])
            record_action(domain.workspace, AuditAction.DOMAIN_CHANGED, about=about)


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


def check_sending_domain(workspace: Workspace, *, name: str) -> None:
    """Check that the workspace can send from exactly this domain.

    Raises DomainNotRegistered, and DomainNotVerified if SENDING_DOMAIN_POLICY requires it.
    """
    problem = find_domain_problems(workspace, [name]).get(name)
    if problem:
        raise problem


def is_dns_optional() -> bool:
    """Return whether a domain without DNS records can send: all emails stay in the built-in inbox."""
    return settings.DELIVERY_TRANSPORT == "inbox" and settings.SENDING_DOMAIN_POLICY == "registered"


def find_domain_problems(workspace: Workspace, names: Collection[str]) -> dict[str, Problem]:
    """Return the problems of the domains that the workspace cannot send from, by name, in one query."""
    unknown = [name for name in names if not sending_domain_cache.get((workspace.id, name))]
    if not unknown:
        return {}
    statuses = dict(run(STATUSES, [to_uuid(workspace.id, prefix="ws_"), unknown]))
    problems: dict[str, Problem] = {}
    for name in unknown:
        problem = _domain_problem(workspace, name, statuses.get(name))
        if problem:
            problems[name] = problem
        else:
            sending_domain_cache.set((workspace.id, name), True)
    return problems


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
    limit = workspace.limits.domains
    if limit is not None and workspace.domains.count() >= limit:
        detail = CodedText("domains.plan_limit", plan=workspace.plan, limit=limit)
        raise PlanLimitReached(detail, resource="domains", limit=limit)
