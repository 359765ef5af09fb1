"""Where a workspace stands with the service: its plan, its suspension, and whether its owner's address is proven."""

import hashlib
import hmac
import struct
import time
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from lib.tokens import InvalidToken, make_token, read_token
from workspaces.audit import Act, note
from workspaces.errors import WorkspaceSuspended
from workspaces.models import Membership, User, Workspace

PURPOSE = "confirm-address"
VALID = timedelta(days=7)
# The account, when the link ends (seconds since 1970), and which address it proves.
PAYLOAD = struct.Struct(">QQ16s")


class ProofGone(Exception):
    """Raised for a link that proves nothing, or nothing any more."""


@transaction.atomic
def suspend_workspace(workspace: Workspace, *, reason: str) -> None:
    """Refuse sending and hold queued mail from now on; suspending again changes the reason alone."""
    suspended = Workspace.objects.filter(id=workspace.id, suspended_at=None).update(suspended_at=Now())
    Workspace.objects.filter(id=workspace.id).update(suspended_reason=reason)
    if suspended:
        note(workspace, Act.WORKSPACE_SUSPENDED, about=reason)


@transaction.atomic
def lift_suspension(workspace: Workspace) -> None:
    """Let what was held go, and forgive what left before (docs/decisions/0065); lifting again changes nothing."""
    held = Workspace.objects.filter(id=workspace.id, suspended_at__isnull=False)
    anew = {"judged_from": F("suspended_at"), "complaints_warned_at": None, "bounces_warned_at": None}
    if held.update(suspended_at=None, suspended_reason="", **anew):
        note(workspace, Act.SUSPENSION_LIFTED)


@transaction.atomic
def change_plan(workspace: Workspace, *, plan: str) -> None:
    if Workspace.objects.filter(id=workspace.id).exclude(plan=plan).update(plan=plan):
        note(workspace, Act.PLAN_CHANGED, about=plan)


def must_prove_address() -> bool:
    """Tell whether a new account has to prove its address: where strangers may sign up in production."""
    return settings.SIGNUP == "open" and not settings.EMBEDDED


def must_have_second_factor(user: User) -> bool:
    """Tell whether an account may not do without a second factor."""
    return user.is_staff and settings.STAFF_SECOND_FACTOR == "required"


def refuse_unproven(workspace: Workspace) -> None:
    """Raises WorkspaceSuspended while nobody has proved the address of the account (docs/decisions/0055)."""
    if not workspace.is_proven:
        raise WorkspaceSuspended(
            "No key of this workspace works before its owner has confirmed an email address: open the link in the "
            "mail that was sent when the account was made, or ask for another one in the dashboard."
        )


def proof_token(user: User) -> str:
    ends_at = int(time.time() + VALID.total_seconds())
    return make_token(PAYLOAD.pack(user.pk, ends_at, _mark(user.email)), purpose=PURPOSE)


def read_proof(token: str) -> User:
    """Return the account whose address a link proves. Raises ProofGone."""
    try:
        user_id, ends_at, mark = PAYLOAD.unpack(read_token(token, purpose=PURPOSE))
    except (InvalidToken, struct.error) as error:
        raise ProofGone from error
    user = User.objects.filter(pk=user_id, is_active=True).first()
    if user is None or time.time() > ends_at or not hmac.compare_digest(mark, _mark(user.email)):
        raise ProofGone
    return user


@transaction.atomic
def prove_address(user: User) -> None:
    """Open the workspaces that the account owns; proving again changes nothing."""
    owned = Workspace.objects.filter(memberships__user=user, memberships__role=Membership.Role.OWNER)
    for workspace in owned.filter(is_proven=False):
        if Workspace.objects.filter(id=workspace.id, is_proven=False).update(is_proven=True):
            note(workspace, Act.WORKSPACE_PROVEN, about=user.email, person=user)


def _mark(email: str) -> bytes:
    return hashlib.sha256(email.encode()).digest()[:16]
