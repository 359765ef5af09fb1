"""Targets of forwards: addresses that have agreed, by a signed link that was sent to them (docs/decisions/0243)."""

import struct
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q, Value
from django.db.models.functions import Now
from django.db.models.lookups import GreaterThan
from django.dispatch import Signal

from core.api.errors import InvalidFields
from core.lib.coded_texts import CodedText
from core.lib.email_addresses import normalize_address
from core.lib.ids import from_uuid, to_uuid
from core.lib.tokens import InvalidToken, make_token, read_token
from core.workspaces.audit import AuditAction, record_action
from core.workspaces.errors import PlanLimitReached
from core.workspaces.models import Workspace
from domains.models import ReceivingDomain
from receiving.models import ForwardTarget

PURPOSE = "forward-target"
# The id of the target, and the expiry in seconds since 1970.
PAYLOAD = struct.Struct(">16sQ")
PREFIX = "fwt_"
LINK_LIFETIME = timedelta(days=7)
# Before a further link is sent to an address.
LINK_INTERVAL = timedelta(minutes=10)
MAX_UNCONFIRMED = 20
# Sent in the transaction that notes the time of a link, with the target; console.system_mail.forward_confirmations
# receives it. An email of the workspace would show the link to its API keys.
confirmation_requested = Signal()


def require_confirmed(workspace: Workspace, addresses: Sequence[str], *, field: str) -> None:
    """Raise InvalidFields for the first address that has not agreed; a link is sent to each of them.

    Not within a transaction, which the error would roll back. Raises PlanLimitReached.

    field: the field of the request; a list of addresses if it ends in `[]`.
    """
    confirmed = confirmed_targets(workspace)
    missing = [index for index, address in enumerate(addresses) if normalize_address(address) not in confirmed]
    for index in missing:
        _refuse_own(addresses[index], field=_named(field, index))
    for index in missing:
        _request_confirmation(workspace, addresses[index])
    if missing:
        detail = CodedText("receiving.forward_not_confirmed", name=addresses[missing[0]])
        _refuse(_named(field, missing[0]), detail, code="forward_not_confirmed")


def confirmed_targets(workspace: Workspace) -> set[str]:
    """Return the addresses that have agreed, in the form in which they are compared."""
    rows = ForwardTarget.objects.filter(workspace=workspace, confirmed_at__isnull=False)
    return set(rows.values_list("address", flat=True))


def is_received_here(address: str) -> bool:
    """Return whether email to an address comes to this installation."""
    domain = address.rpartition("@")[2].lower()
    if domain == (settings.RECEIVING_DOMAIN or "").lower():
        return True
    return ReceivingDomain.objects.filter(name=domain).exclude(status=ReceivingDomain.ReceivingStatus.FAILED).exists()


def find_target(token: str) -> ForwardTarget | None:
    """Return the target of a link, None for an invalid or expired one. A link of a confirmed target does not expire."""
    try:
        data = read_token(token, purpose=PURPOSE)
    except InvalidToken:
        return None
    if len(data) != PAYLOAD.size:
        return None
    target, expires = PAYLOAD.unpack(data)
    is_valid = GreaterThan(Value(datetime.fromtimestamp(expires, UTC)), Now())
    targets = ForwardTarget.objects.filter(Q(is_valid) | Q(confirmed_at__isnull=False)).select_related("workspace")
    return targets.filter(id=from_uuid(UUID(bytes=target), prefix=PREFIX)).first()


def confirm_target(target: ForwardTarget) -> None:
    """Let the workspace forward to an address. Its second confirmation changes nothing."""
    if ForwardTarget.objects.filter(id=target.id, confirmed_at=None).update(confirmed_at=Now()):
        record_action(target.workspace, AuditAction.FORWARD_CONFIRMED, about=target.address)


def refuse_target(target: ForwardTarget) -> None:
    """End forwarding to an address at once, for all routes of the workspace."""
    if ForwardTarget.objects.filter(id=target.id).delete()[0]:
        record_action(target.workspace, AuditAction.FORWARD_REFUSED, about=target.address)


def target_url(target: ForwardTarget) -> str:
    """Return the link of a target, valid from when it was sent."""
    expires_at = (target.link_sent_at or datetime.now(UTC)) + LINK_LIFETIME
    payload = PAYLOAD.pack(to_uuid(target.id, prefix=PREFIX).bytes, int(expires_at.timestamp()))
    return f"{settings.PUBLIC_URL}/inbound/forward/{make_token(payload, purpose=PURPOSE)}"


def _request_confirmation(workspace: Workspace, address: str) -> None:
    """Let a link be sent to an address, at most one in LINK_INTERVAL."""
    known = ForwardTarget.objects.filter(workspace=workspace, address=normalize_address(address))
    unconfirmed = ForwardTarget.objects.filter(workspace=workspace, confirmed_at=None)
    if not known.exists():
        if unconfirmed.count() >= MAX_UNCONFIRMED:
            detail = CodedText("receiving.too_many_targets", limit=MAX_UNCONFIRMED)
            raise PlanLimitReached(detail, resource="forward targets", limit=MAX_UNCONFIRMED)
        ForwardTarget.objects.get_or_create(workspace=workspace, address=normalize_address(address))
    # One of several simultaneous requests sends.
    old = Q(link_sent_at=None) | Q(link_sent_at__lt=Now() - LINK_INTERVAL)
    with transaction.atomic():
        if known.filter(old).update(link_sent_at=Now()):
            confirmation_requested.send(ForwardTarget, target=known.get())


def _refuse_own(address: str, *, field: str) -> None:
    if is_received_here(address):
        detail = CodedText("receiving.forward_to_own", name=address)
        _refuse(field, detail, code="forward_to_receiving_domain")


def _named(field: str, index: int) -> str:
    return f"{field.removesuffix('[]')}[{index}]" if field.endswith("[]") else field


def _refuse(field: str, detail: str, *, code: str) -> None:
    raise InvalidFields([{"field": field, "code": code, "detail": detail}])
