"""What a suspended workspace may not do."""

from typing import Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from workspaces.api.authentication import workspace_of
from workspaces.errors import WorkspaceSuspended

ACCEPTING = frozenset({"send", "batch", "resend", "partial_update"})


class MayAccept(BasePermission):
    def has_permission(self, request: Request, view: Any) -> bool:
        if view.action in ACCEPTING and workspace_of(request).is_suspended:
            raise WorkspaceSuspended("This workspace is suspended; nothing can be sent from it.")
        return True
