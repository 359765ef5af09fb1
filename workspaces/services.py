"""Acts on accounts, workspaces and keys."""

from datetime import datetime

from django.db import transaction
from django.db.models.functions import Now

from workspaces.errors import PlanLimitReached
from workspaces.models import ApiKey, Membership, User, Workspace
from workspaces.plans import MAX_KEYS
from workspaces.secrets import KeySecret, hash_secret, new_secret


@transaction.atomic
def open_account(*, email: str, password: str, workspace_name: str, plan: str) -> Workspace:
    """Create an account with a workspace that it owns. Raises IntegrityError for an address in use."""
    user = User.objects.create_user(email=email, password=password)
    return create_workspace(name=workspace_name, plan=plan, owner=user)


@transaction.atomic
def create_workspace(*, name: str, plan: str, owner: User) -> Workspace:
    workspace = Workspace.objects.create(name=name, plan=plan)
    Membership.objects.create(workspace=workspace, user=owner, role=Membership.Role.OWNER)
    return workspace


@transaction.atomic
def issue_api_key(
    workspace: Workspace, *, name: str, scope: str, expires_at: datetime | None = None
) -> tuple[ApiKey, KeySecret]:
    """Make a key; the secret beside it is shown now and never again. Raises PlanLimitReached at 100 keys."""
    Workspace.objects.select_for_update().get(id=workspace.id)
    if workspace.api_keys.filter(revoked_at=None).count() >= MAX_KEYS:
        raise PlanLimitReached(
            f"A workspace has at most {MAX_KEYS} keys; revoke one.", resource="apiKeys", limit=MAX_KEYS
        )
    key = ApiKey(workspace=workspace, name=name, scope=scope, expires_at=expires_at)
    secret = new_secret(key.id)
    key.secret_hash, key.last_four = hash_secret(secret.secret), secret.text[-4:]
    key.save(force_insert=True)
    return key, secret


def revoke_api_key(key: ApiKey) -> None:
    """End a key for good; revoking again changes nothing. Processes notice within one second."""
    ApiKey.objects.filter(id=key.id, revoked_at=None).update(revoked_at=Now())
