"""Services of receiving: routes, blocks, bypass, redelivery and deletion."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.conf import settings
from django.db import transaction

from core.api.errors import InvalidFields, NotFound
from core.lib.coded_texts import CodedText
from core.workspaces.audit import AuditAction, record_action
from core.workspaces.errors import PlanLimitReached
from core.workspaces.models import Workspace
from domains.models import ReceivingDomain
from receiving.arrival.patterns import count_literals
from receiving.deletion import delete_emails
from receiving.errors import NotBlocked, NotPublished
from receiving.forwarding.targets import require_confirmed
from receiving.models import SHARED, InboundRoute, ReceivedEmail, SenderBlock
from receiving.publishing import Move, move_emails
from receiving.states import ReceivedStatus
from webhooks.models import Webhook
from webhooks.services import redeliver_event

MAX_ROUTES = 100
MAX_BLOCKS = 1_000


def create_route(workspace: Workspace, *, values: Mapping[str, Any]) -> InboundRoute:
    """Create a route. Raises InvalidFields, and PlanLimitReached at MAX_ROUTES."""
    _check_targets(workspace, values)
    return _create_route(workspace, values)


def update_route(route: InboundRoute, *, changes: Mapping[str, Any]) -> InboundRoute:
    """Change a route; messages that were accepted before keep the old one's days. Raises InvalidFields, NotFound."""
    current = {name: getattr(route, name) for name in ("domain", "forward_to")}
    _check_targets(route.workspace, {**current, **changes}, is_new="forward_to" in changes)
    return _update_route(route, changes)


@transaction.atomic
def _create_route(workspace: Workspace, values: Mapping[str, Any]) -> InboundRoute:
    workspace.lock()
    if InboundRoute.objects.filter(workspace=workspace).count() >= MAX_ROUTES:
        detail = CodedText("receiving.too_many_routes", limit=MAX_ROUTES)
        raise PlanLimitReached(detail, resource="routes", limit=MAX_ROUTES)
    route = InboundRoute(workspace=workspace, **values, literals=count_literals(values["match"]))
    _check_route(route)
    route.save(force_insert=True)
    record_action(workspace, AuditAction.ROUTE_CREATED, about=f"{route.name} ({route.match}@{route.domain})")
    route.refresh_from_db()
    return route


@transaction.atomic
def _update_route(route: InboundRoute, changes: Mapping[str, Any]) -> InboundRoute:
    locked = InboundRoute.objects.select_for_update().filter(id=route.id).first()
    if locked is None:
        raise NotFound
    for name, value in changes.items():
        setattr(locked, name, value)
    locked.literals = count_literals(locked.match)
    _check_route(locked)
    locked.save(update_fields=[*changes, "literals"])
    about = CodedText("workspaces.change", about=locked.name, words=list(changes))
    record_action(locked.workspace, AuditAction.ROUTE_CHANGED, about=about)
    return locked


@transaction.atomic
def delete_route(route: InboundRoute) -> None:
    if InboundRoute.objects.filter(id=route.id).delete()[0]:
        record_action(route.workspace, AuditAction.ROUTE_DELETED, about=f"{route.name} ({route.match}@{route.domain})")


@transaction.atomic
def block_sender(workspace: Workspace, *, sender: str) -> tuple[SenderBlock, bool]:
    """Block an address or a domain, in lower case; return the block and whether it is new.

    Raises PlanLimitReached at MAX_BLOCKS.
    """
    workspace.lock()
    blocks = SenderBlock.objects.filter(workspace=workspace)
    if known := blocks.filter(sender=sender).first():
        return known, False
    if blocks.count() >= MAX_BLOCKS:
        detail = CodedText("receiving.too_many_blocks", limit=MAX_BLOCKS)
        raise PlanLimitReached(detail, resource="blocks", limit=MAX_BLOCKS)
    block = SenderBlock.objects.create(workspace=workspace, sender=sender)
    record_action(workspace, AuditAction.SENDER_BLOCKED, about=sender)
    block.refresh_from_db()
    return block, True


@transaction.atomic
def unblock_sender(block: SenderBlock) -> None:
    if SenderBlock.objects.filter(id=block.id).delete()[0]:
        record_action(block.workspace, AuditAction.SENDER_UNBLOCKED, about=block.sender)


@transaction.atomic
def bypass_block(email: ReceivedEmail) -> ReceivedEmail:
    """Publish a blocked email. Raises NotBlocked."""
    locked = _lock(email)
    if locked.status != ReceivedStatus.BLOCKED:
        raise NotBlocked(CodedText("receiving.not_blocked", status=locked.status), emailStatus=locked.status)
    move_emails([Move(locked, ReceivedStatus.PROCESSED)])
    record_action(locked.workspace, AuditAction.INBOUND_BYPASSED, about=locked.id)
    return locked


@transaction.atomic
def redeliver_email(email: ReceivedEmail, *, webhook_ids: Sequence[str] | None) -> int:
    """Post the event of an email again; return the number of deliveries.

    webhook_ids: the endpoints; None for all that got it, or those that subscribe to it now.
    Raises NotPublished, and InvalidFields for an unknown endpoint.
    """
    locked = _lock(email)
    if locked.event_id is None:
        raise NotPublished(CodedText("receiving.not_published", status=locked.status), emailStatus=locked.status)
    if webhook_ids:
        _check_webhooks(locked.workspace, webhook_ids, field="webhookIds")
    return redeliver_event(locked.workspace, locked.event_id, webhook_ids=webhook_ids)


@transaction.atomic
def delete_email(email: ReceivedEmail) -> None:
    """Delete a received email with its content, its event and the deliveries."""
    if delete_emails([email.id]):
        record_action(email.workspace, AuditAction.INBOUND_DELETED, about=email.id)


def _lock(email: ReceivedEmail) -> ReceivedEmail:
    locked = ReceivedEmail.objects.select_for_update(of=("self",)).select_related("workspace").filter(id=email.id)
    found = locked.first()
    if found is None:
        raise NotFound
    return found


def _check_route(route: InboundRoute) -> None:
    """Raise InvalidFields if a route refers to something that does not exist, or keeps content for too long."""
    names = ReceivingDomain.objects.filter(workspace=route.workspace, name=route.domain)
    if route.domain == SHARED and not settings.RECEIVING_DOMAIN:
        _refuse("domain", CodedText("receiving.no_shared_domain"), code="receiving_not_active")
    if route.domain != SHARED and not names.exists():
        _refuse("domain", CodedText("receiving.unknown_domain", name=route.domain), code="receiving_not_active")
    days = route.workspace.limits.retention.days
    if route.store_days is not None and route.store_days > days:
        _refuse("storeDays", CodedText("receiving.store_days", limit=days), code="retention_exceeded")
    _check_webhooks(route.workspace, route.webhook_ids, field="webhookIds")


def _check_targets(workspace: Workspace, values: Mapping[str, Any], *, is_new: bool = True) -> None:
    """Raise InvalidFields for a route that cannot forward. is_new: whether its targets are given now."""
    targets = values.get("forward_to")
    if not targets:
        return
    if values["domain"] == SHARED:
        _refuse("forwardTo", CodedText("receiving.forward_shared"), code="forward_needs_domain")
    if is_new:
        require_confirmed(workspace, targets, field="forwardTo[]")


def _check_webhooks(workspace: Workspace, webhook_ids: Collection[str], *, field: str) -> None:
    known = {*Webhook.objects.filter(workspace=workspace).values_list("id", flat=True)}
    for index, webhook_id in enumerate(webhook_ids):
        if webhook_id not in known:
            detail = CodedText("receiving.unknown_webhook", name=repr(webhook_id))
            _refuse(f"{field}[{index}]", detail, code="unknown_webhook")


def _refuse(field: str, detail: str, *, code: str) -> None:
    raise InvalidFields([{"field": field, "code": code, "detail": detail}])
