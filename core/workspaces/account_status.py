"""Workspace status: plan, suspension, and confirmation of the owner's email address."""

import hashlib
import hmac
import logging
import struct
import time
from collections.abc import Mapping
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from core.lib.coded_texts import CodedText
from core.lib.tokens import InvalidToken, make_token, read_token
from core.workspaces.audit import AuditAction, record_action
from core.workspaces.deletion import refuse_deleted
from core.workspaces.errors import WorkspaceSuspended
from core.workspaces.models import Membership, User, Workspace
from core.workspaces.plans import UNLIMITED

PURPOSE = "confirm-address"
LINK_LIFETIME = timedelta(days=7)
# User id, expiry (seconds since 1970), digest of the address.
PAYLOAD = struct.Struct(">QQ16s")

log = logging.getLogger("postrider.accounts")


class InvalidConfirmationLink(Exception):
    """Raised for a confirmation link that is invalid or has expired."""


@transaction.atomic
def suspend_workspace(workspace: Workspace, *, reason: str) -> None:
    """Refuse new emails and pause queued ones. Suspending again changes only the reason."""
    suspended = Workspace.objects.filter(id=workspace.id, suspended_at=None).update(suspended_at=Now())
    code = reason.to_json() if isinstance(reason, CodedText) else None
    Workspace.objects.filter(id=workspace.id).update(suspended_reason=reason, suspended_code=code)
    if suspended:
        record_action(workspace, AuditAction.WORKSPACE_SUSPENDED, about=reason)


@transaction.atomic
def lift_suspension(workspace: Workspace) -> None:
    """Resume sending, and exclude earlier emails from reputation (docs/decisions/0065). Lifting again does nothing."""
    suspended = Workspace.objects.filter(id=workspace.id, suspended_at__isnull=False)
    reputation_reset = {"judged_from": F("suspended_at"), "complaints_warned_at": None, "bounces_warned_at": None}
    if suspended.update(suspended_at=None, suspended_reason="", suspended_code=None, **reputation_reset):
        record_action(workspace, AuditAction.SUSPENSION_LIFTED)


@transaction.atomic
def change_plan(workspace: Workspace, *, plan: str) -> None:
    if Workspace.objects.filter(id=workspace.id).exclude(plan=plan).update(plan=plan):
        record_action(workspace, AuditAction.PLAN_CHANGED, about=plan)


@transaction.atomic
def change_limits(workspace: Workspace, *, limits: Mapping[str, int | None]) -> None:
    """Set the limits that replace those of the plan, by their names in PLANS_FILE; None is unlimited."""
    if Workspace.objects.filter(id=workspace.id).exclude(own_limits=limits).update(own_limits=limits):
        shown = [f"{name}={UNLIMITED if value is None else value}" for name, value in limits.items()]
        current = Workspace.objects.values_list("plan", flat=True).get(id=workspace.id)
        about = CodedText("workspaces.change", about=current, words=shown) if shown else current
        record_action(workspace, AuditAction.PLAN_CHANGED, about=about)


def must_confirm_address() -> bool:
    """Return True if new accounts must confirm their address: open sign-up outside embedded mode."""
    return settings.SIGNUP == "open" and not settings.EMBEDDED


def must_have_second_factor(user: User) -> bool:
    """Return True if the account must use a second factor."""
    return user.is_staff and settings.STAFF_SECOND_FACTOR == "required"


def refuse_suspended(workspace: Workspace) -> None:
    """Raise WorkspaceDeleted or WorkspaceSuspended for a workspace that cannot send."""
    refuse_deleted(workspace)
    if workspace.is_suspended:
        raise WorkspaceSuspended(CodedText("workspaces.suspended"))


def refuse_inactive(workspace: Workspace) -> None:
    """Refuse keys of a deleted workspace, and those of one whose owner has not confirmed an email address.

    Raises WorkspaceDeleted, WorkspaceSuspended (docs/decisions/0055).
    """
    refuse_deleted(workspace)
    if not workspace.is_proven:
        raise WorkspaceSuspended(CodedText("workspaces.unconfirmed"))


def confirmation_token(user: User) -> str:
    expires_at = int(time.time() + LINK_LIFETIME.total_seconds())
    return make_token(PAYLOAD.pack(user.pk, expires_at, _address_digest(user.email)), purpose=PURPOSE)


def read_confirmation_token(token: str) -> User:
    """Return the account whose address the link confirms. Raises InvalidConfirmationLink."""
    try:
        user_id, expires_at, digest = PAYLOAD.unpack(read_token(token, purpose=PURPOSE))
    except (InvalidToken, struct.error) as error:
        raise InvalidConfirmationLink from error
    user = User.objects.filter(pk=user_id, is_active=True).first()
    if user is None or time.time() > expires_at or not hmac.compare_digest(digest, _address_digest(user.email)):
        raise InvalidConfirmationLink
    return user


@transaction.atomic
def confirm_address(user: User) -> None:
    """Activate the API keys of all workspaces that the account owns. Confirming again does nothing."""
    owned = Workspace.objects.filter(memberships__user=user, memberships__role=Membership.Role.OWNER)
    for workspace in owned.filter(is_proven=False):
        if Workspace.objects.filter(id=workspace.id, is_proven=False).update(is_proven=True):
            record_action(workspace, AuditAction.ADDRESS_CONFIRMED, about=user.email, person=user)


def is_unconfirmed(user: User) -> bool:
    """Return True for an account that nobody has confirmed: all its workspaces wait for the confirmation."""
    return not user.is_staff and {*user.workspaces.values_list("is_proven", flat=True)} == {False}


@transaction.atomic
def discard_account(user: User) -> bool:
    """Delete an unconfirmed account and release its address; return False for any other account.

    Its workspaces are deleted by the next cleanup (docs/decisions/0090).
    """
    # Waits for a confirmation in progress.
    list(Workspace.objects.filter(memberships__user=user).select_for_update(of=("self",)))
    if not is_unconfirmed(user):
        return False
    user.delete()
    log.info("an unconfirmed account was discarded")
    return True


def delete_abandoned_workspaces() -> None:
    """Delete unconfirmed workspaces without members: nobody can confirm them."""
    for workspace in Workspace.objects.filter(is_proven=False, memberships=None):
        workspace.delete()


def _address_digest(email: str) -> bytes:
    return hashlib.sha256(email.encode()).digest()[:16]
