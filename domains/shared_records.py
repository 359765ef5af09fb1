"""Links that show the DNS records of a domain without signing in, for the person who publishes them.

A link has an encrypted token with the domain and the end of the link, which the row has too: a new link replaces the
one before, and without an end in the row there is none (docs/decisions/0392).
"""

import struct
import uuid
from datetime import UTC, datetime, timedelta

from django.db import transaction
from django.db.models.functions import Now

from core.lib.ids import from_uuid, to_uuid
from core.lib.tokens import InvalidToken, make_token, read_token
from core.workspaces.audit import AuditAction, record_action
from domains.models import Domain

PURPOSE = "shared-records"
LINK_LIFETIME = timedelta(days=14)
# UUID of the domain, end of the link (microseconds since 1970).
PAYLOAD = struct.Struct(">16sQ")
EPOCH = datetime.fromtimestamp(0, UTC)


@transaction.atomic
def share_records(domain: Domain) -> None:
    """Let a new link show the records of a domain for LINK_LIFETIME; an earlier link ends."""
    Domain.objects.filter(id=domain.id).update(records_shared_until=Now() + LINK_LIFETIME)
    record_action(domain.workspace, AuditAction.DOMAIN_RECORDS_SHARED, about=domain.name)
    domain.refresh_from_db(fields=["records_shared_until"])


@transaction.atomic
def stop_sharing_records(domain: Domain) -> None:
    """End the link of a domain, if it has one."""
    if Domain.objects.filter(id=domain.id, records_shared_until__gt=Now()).update(records_shared_until=None):
        record_action(domain.workspace, AuditAction.DOMAIN_RECORDS_UNSHARED, about=domain.name)


def shared_records_token(domain: Domain) -> str:
    """Return the token of the link of a domain; empty if it has none or it has ended."""
    until = Domain.objects.filter(id=domain.id, records_shared_until__gt=Now())
    end = until.values_list("records_shared_until", flat=True).first()
    return "" if end is None else _token(domain, end)


def find_shared_domain(token: str) -> Domain | None:
    """Return the domain of a valid link; None for every other text, and for that of a deleted workspace."""
    try:
        key, end = PAYLOAD.unpack(read_token(token, purpose=PURPOSE))
    except (InvalidToken, struct.error):
        return None
    rows = Domain.objects.select_related("workspace", "tracking_host", "receiving_domain")
    domain_id, until = from_uuid(uuid.UUID(bytes=key), prefix="dom_"), EPOCH + timedelta(microseconds=end)
    domain = rows.filter(id=domain_id, records_shared_until=until, records_shared_until__gt=Now()).first()
    return None if domain is None or domain.workspace.is_deleted else domain


def _token(domain: Domain, end: datetime) -> str:
    key = to_uuid(domain.id, prefix="dom_").bytes
    return make_token(PAYLOAD.pack(key, (end - EPOCH) // timedelta(microseconds=1)), purpose=PURPOSE)
