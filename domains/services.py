"""Acts on domains."""

import base64
import secrets

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from django.conf import settings
from django.db import connection, transaction
from django.db.models.functions import Now

from domains.errors import DomainAlreadyExists, DomainNotRegistered, DomainNotVerified
from domains.models import MAY_SEND, DkimKey, Domain
from domains.records import missing_records
from lib.ids import to_uuid
from lib.ttl_cache import Recent
from workspaces.audit import Act, note
from workspaces.errors import PlanLimitReached
from workspaces.models import Workspace

KEY_BITS = 2048
SELECTOR_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"
# Domains that may send. One that is deleted is refused within a second, like a key that is revoked.
registered: Recent[tuple[str, str], bool] = Recent()
STATUS = "SELECT status FROM domains_domain WHERE workspace_id = %s AND name = %s"


def register_domain(workspace: Workspace, *, name: str) -> Domain:
    """Register an A-label with a DKIM key pair of its own.

    Raises DomainAlreadyExists, and PlanLimitReached where the plan has no room.
    """
    # Made before the transaction: finding two primes may take half a second.
    domain = Domain(workspace=workspace, name=name)
    key = new_dkim_key(domain, selector=new_selector())
    with transaction.atomic():
        Workspace.objects.select_for_update().get(id=workspace.id)
        _refuse(workspace, name)
        domain.save(force_insert=True)
        key.save(force_insert=True)
        note(workspace, Act.DOMAIN_ADDED, about=name)
    domain.refresh_from_db()
    return domain


def delete_domain(domain: Domain) -> None:
    """Delete a domain with its keys. What was accepted from it and is not yet sent loses its signature."""
    with transaction.atomic():
        # The domain before its keys, as a check that is written down locks them.
        Domain.objects.select_for_update().filter(id=domain.id).first()
        if domain.delete()[0]:
            note(domain.workspace, Act.DOMAIN_DELETED, about=domain.name)


def rotate_dkim_key(domain: Domain) -> None:
    """Make a new key that signs as soon as the DNS shows it; the old one signs until then.

    While a key is still to be seen nothing is changed, so that asking again is safe.
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
        note(domain.workspace, Act.DOMAIN_ROTATED, about=domain.name)


def new_dkim_key(domain: Domain, *, selector: str) -> DkimKey:
    """Make a key pair, RSA with 2048 bits (RFC 8301), sealed and not yet saved."""
    private = rsa.generate_private_key(public_exponent=65_537, key_size=KEY_BITS)
    return sealed_dkim_key(domain, selector=selector, private=private)


def new_selector() -> str:
    """Return a selector of this key's own: two workspaces with one domain must not publish at one name."""
    return "pr-" + "".join(secrets.choice(SELECTOR_ALPHABET) for _ in range(8))


def sealed_dkim_key(domain: Domain, *, selector: str, private: rsa.RSAPrivateKey) -> DkimKey:
    """Seal a key pair into a new row; the row is not saved."""
    public = private.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    key = DkimKey(domain=domain, selector=selector, public_key=base64.b64encode(public).decode())
    return key.with_private_key(pem)


def check_sending_domain(workspace: Workspace, *, name: str) -> None:
    """Check that a From address names a domain exactly from which the workspace may send.

    Raises DomainNotRegistered, and where SENDING_DOMAIN_POLICY wants it DomainNotVerified.
    """
    if registered.get((workspace.id, name)):
        return
    with connection.cursor() as cursor:
        cursor.execute(STATUS, [to_uuid(workspace.id, prefix="ws_"), name])
        row = cursor.fetchone()
    if row is None:
        raise DomainNotRegistered(f"{name} is not registered in this workspace; register it first.", domain=name)
    if settings.SENDING_DOMAIN_POLICY == "verified" and row[0] not in MAY_SEND:
        raise _not_verified(workspace, name)
    registered.keep((workspace.id, name), True)


def _not_verified(workspace: Workspace, name: str) -> DomainNotVerified:
    domain = workspace.domains.prefetch_related("dkim_keys").get(name=name)
    missing = [
        {"record": one.record, "type": one.type, "fqdn": one.fqdn, "value": one.value, "status": one.status}
        for one in missing_records(domain)
    ]
    return DomainNotVerified(
        f"{name} is not verified in this workspace; publish its DNS records, then verify it.",
        domain=name,
        missingRecords=missing,
    )


def _is_waiting_for_key(domain: Domain) -> bool:
    return domain.dkim_keys.filter(seen_at=None, retired_at=None).exists()


def _refuse(workspace: Workspace, name: str) -> None:
    if workspace.domains.filter(name=name).exists():
        raise DomainAlreadyExists(f"{name} is registered in this workspace already.")
    limit = workspace.limits.domains
    if limit is not None and workspace.domains.count() >= limit:
        raise PlanLimitReached(
            f"The {workspace.plan} plan has room for {limit}; delete a domain or change the plan.",
            resource="domains",
            limit=limit,
        )
