"""Permissions of received emails."""

from typing import Any

from rest_framework.request import Request

from workspaces.api.scopes import HasScope, Scope, refuse_other_scopes


class ReadsReceived(HasScope):
    """Lets a key with sending_access read received emails only if it is a test key.

    A key of a website that sends would otherwise show what others wrote to the workspace.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        allowed = super().has_permission(request, view)
        key: Any = request.auth
        if key.scope == Scope.SENDING_ACCESS and not key.is_test and view.action != "create":
            refuse_other_scopes(key, needed=Scope.FULL_ACCESS if view.action == "destroy" else Scope.READ_ONLY)
        return allowed
