"""Authentication and access of the management API: the only place that decides which workspaces a key manages."""

from typing import Any

from django.db.models import QuerySet
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from console.provisioning.models import ManagementKey
from core.workspaces.api.authentication import (
    ApiKeyAuthentication,
    ReadAddress,
    authenticate_key,
    read_bearer,
    record_use,
    refuse_ended_key,
)
from core.workspaces.api.scopes import HasScope, refuse_other_scopes
from core.workspaces.api_key_secrets import hash_secret, parse_key, secret_matches
from core.workspaces.deletion import existing_workspaces
from core.workspaces.errors import InsufficientScope, InvalidApiKey
from core.workspaces.models import ApiKey, Workspace

AnyKey = ManagementKey | ApiKey


class ManagementAuthentication(ApiKeyAuthentication):
    """`Authorization: Bearer pra_…`, or an API key; request.auth is the key."""

    def find(self, header: str, *, client: ReadAddress) -> Any:
        text = read_bearer(header)
        secret = parse_key(text)
        if secret is None or secret.prefix != ManagementKey.prefix:
            return authenticate_key(header, client=client)
        key = ManagementKey.objects.filter(id=secret.id).first()
        # An unknown id takes as long as a wrong secret.
        if not secret_matches(secret.secret, key.secret_hash if key else hash_secret("")) or key is None:
            raise InvalidApiKey("This management key does not exist. Check that you copied the complete key.")
        refuse_ended_key(key, kind="management key")
        record_use(key)
        return key


class ManagesWorkspaces(BasePermission):
    """Allows management keys, and API keys with workspace_admin except for the `management_actions` of the view."""

    def has_permission(self, request: Request, view: Any) -> bool:
        key = managing_key(request)
        if isinstance(key, ManagementKey):
            return True
        if view.action in view.management_actions:
            raise InsufficientScope("This request requires a management key (pra_…).", requiredScope=MANAGEMENT_SCOPE)
        refuse_other_scopes(key, needed=ApiKey.Scope.WORKSPACE_ADMIN)
        return True


class ManagesInstallation(BasePermission):
    """Allows management keys of all workspaces: what they read is about the email of all."""

    def has_permission(self, request: Request, view: Any) -> bool:
        key = managing_key(request)
        if isinstance(key, ManagementKey) and not key.group:
            return True
        text = "This request requires a management key (pra_…) without a group."
        raise InsufficientScope(text, requiredScope=MANAGEMENT_SCOPE)


class ReadsConfiguration(HasScope):
    """Allows management keys, and API keys that may read the workspace: a check changes nothing."""

    def has_permission(self, request: Request, view: Any) -> bool:
        return isinstance(managing_key(request), ManagementKey) or super().has_permission(request, view)


MANAGEMENT_SCOPE = "management"


def managing_key(request: Request) -> AnyKey:
    key = request.auth
    assert isinstance(key, ManagementKey | ApiKey)
    return key


def managed_workspaces(key: AnyKey) -> QuerySet[Workspace]:
    """Return the workspaces that a key manages: all, those of its group, or the workspace of an API key.

    Deleted ones are included until their grace period ends.
    """
    existing = existing_workspaces()
    if isinstance(key, ApiKey):
        return existing.filter(id=key.workspace_id)
    return existing.filter(group=key.group) if key.group else existing
