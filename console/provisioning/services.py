"""Services of the management API: its keys, and invitations and API keys that another key creates."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from console.provisioning.access import MANAGEMENT_SCOPE, AnyKey
from console.provisioning.models import ManagementKey
from console.system_mail.invitations import send_invitation
from core.api.errors import InvalidFields
from core.workspaces.account_status import change_plan, refuse_suspended
from core.workspaces.api_key_secrets import KeySecret, hash_secret, new_secret
from core.workspaces.errors import InsufficientScope
from core.workspaces.members import invite_member
from core.workspaces.models import Invitation, Membership, Workspace
from core.workspaces.recipients.rules import RecipientRules
from core.workspaces.services import change_rules, create_workspace, rename_workspace


def issue_management_key(
    *, name: str, group: str = "", expires_at: datetime | None = None
) -> tuple[ManagementKey, KeySecret]:
    """Create a management key; return it with its secret, which is not stored. group: empty for all workspaces."""
    key = ManagementKey(name=name, group=group, expires_at=expires_at)
    return key, save_new_key(key)


def save_new_key(key: ManagementKey) -> KeySecret:
    """Generate the secret of a new management key and save the key; return the secret, which is not stored."""
    key.new_secret = secret = new_secret(key.id, prefix=ManagementKey.prefix)
    key.secret_hash, key.last_four = hash_secret(secret.secret), secret.text[-4:]
    key.save(force_insert=True)
    return secret


def revoke_management_key(key: ManagementKey) -> None:
    """Revoke a management key permanently, at once. Revoking again does nothing."""
    ManagementKey.objects.filter(id=key.id, revoked_at=None).update(revoked_at=Now())


@transaction.atomic
def invite(workspace: Workspace, *, email: str, role: str) -> Invitation:
    """Invite a member and queue the email. Raises WorkspaceDeleted, WorkspaceSuspended, AlreadyMember."""
    refuse_suspended(workspace)
    invitation = invite_member(workspace, email=email, role=role, by=None)
    send_invitation(invitation)
    return invitation


@transaction.atomic
def provision_workspace(
    creator: ManagementKey,
    *,
    name: str,
    plan: str,
    group: str = "",
    ownerEmail: str = "",  # noqa: N803 - a wire name
    recipientRules: RecipientRules | None = None,  # noqa: N803
) -> Workspace:
    """Create a workspace in the creator's group, and invite its owner. Raises InvalidFields for another group."""
    if creator.group and group not in {"", creator.group}:
        detail = f"This key creates workspaces in the group {creator.group} only."
        raise InvalidFields([{"field": "group", "code": "foreign_group", "detail": detail}])
    workspace = create_workspace(name=name, plan=plan, group=creator.group or group)
    change_rules(workspace, rules=recipientRules)
    if ownerEmail:
        invite(workspace, email=ownerEmail, role=Membership.Role.OWNER)
    workspace.refresh_from_db()
    return workspace


@transaction.atomic
def change_workspace(workspace: Workspace, *, creator: AnyKey, changes: Mapping[str, Any]) -> None:
    """Change a workspace by the values of WorkspaceChangesInput.

    Raises InsufficientScope for the plan and an API key.
    """
    if "plan" in changes and not isinstance(creator, ManagementKey):
        detail = "Changing the plan requires a management key (pra_…)."
        raise InsufficientScope(detail, requiredScope=MANAGEMENT_SCOPE)
    if "name" in changes:
        rename_workspace(workspace, name=changes["name"])
    if "plan" in changes:
        change_plan(workspace, plan=changes["plan"])
    if "recipientRules" in changes:
        change_rules(workspace, rules=changes["recipientRules"])
