"""Scope permissions, the same rule for all views (docs/specification.md, Authentication)."""

from typing import Any

from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from core.workspaces.errors import InsufficientScope
from core.workspaces.models import ApiKey

Scope = ApiKey.Scope


class HasScope(BasePermission):
    """Checks the key's scope.

    Actions of a view: `sending_only_actions` accept emails, `sending_actions` are also open to sending_access, and
    `reading_actions` read by a method other than GET. `full_access_actions` read what read_only must not.
    `deciding_actions` are open to the scope approvals only, and `approvals_actions` also to it.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        if not hasattr(view, str(request.method).lower()):
            return True  # The response is 405: another key would not help.
        key = request.auth
        allowed = allowed_scopes(view, request)
        if not isinstance(key, ApiKey) or key.scope not in allowed:
            needed = allowed[0].value
            raise InsufficientScope(f"This request requires an API key with scope {needed}.", requiredScope=needed)
        return True


class AdministersWorkspace(HasScope):
    """Allows only keys with the scope workspace_admin."""

    def has_permission(self, request: Request, view: Any) -> bool:
        refuse_other_scopes(request.auth, needed=Scope.WORKSPACE_ADMIN)
        return True


def refuse_other_scopes(key: Any, *, needed: Scope) -> None:
    """Raise InsufficientScope for a key with another scope."""
    if key.scope != needed:
        detail = f"This request requires an API key with scope {needed.value}."
        raise InsufficientScope(detail, requiredScope=needed.value)


def allowed_scopes(view: Any, request: Request) -> list[Scope]:
    """Return the scopes that allow this request, the smallest first."""
    return action_scopes(view, getattr(view, "action", None), is_reading=request.method in SAFE_METHODS)


def action_scopes(view: Any, action: str | None, *, is_reading: bool) -> list[Scope]:
    """Return the scopes that allow an action of a view, the smallest first."""
    if action in getattr(view, "deciding_actions", ()):
        return [Scope.APPROVALS]
    scopes = [Scope.FULL_ACCESS, Scope.WORKSPACE_ADMIN]
    is_reading = is_reading and action not in getattr(view, "full_access_actions", ())
    if is_reading or action in getattr(view, "reading_actions", ()):
        scopes.insert(0, Scope.READ_ONLY)
    if action in getattr(view, "sending_actions", ()):
        scopes.insert(0, Scope.SENDING_ACCESS)
    if action in getattr(view, "sending_only_actions", ()):
        scopes.insert(0, Scope.SENDING_ONLY)
    if action in getattr(view, "approvals_actions", ()):
        scopes.append(Scope.APPROVALS)
    return scopes
