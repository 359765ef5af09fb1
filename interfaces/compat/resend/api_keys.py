"""Resend's API: API keys. A key with the scope workspace_admin manages them, as in `/v1/admin`.

See docs/decisions/0117.
"""

from collections.abc import Sequence
from typing import Any

from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.fields import NameField
from core.lib.datetimes import format_datetime
from core.lib.ids import from_any_spelling, uuid_text
from core.workspaces.api.authentication import key_of
from core.workspaces.api.scopes import AdministersWorkspace
from core.workspaces.key_limits import read_limits
from core.workspaces.models import ApiKey
from core.workspaces.services import issue_key_for, revoke_api_key
from domains.models import Domain
from interfaces.compat.drafts import read_choice, validate_field
from interfaces.compat.resend.resources import Resource
from interfaces.compat.resend.views import ResendViewSet
from interfaces.compat.views import find_row

# https://resend.com/docs/api-reference/api-keys/create-api-key: sending_access "can only send emails".
PERMISSIONS = {"full_access": ApiKey.Scope.FULL_ACCESS, "sending_access": ApiKey.Scope.SENDING_ONLY}


def key_item(key: ApiKey) -> Resource:
    """Return an API key in a list."""
    return {
        "id": uuid_text(key.id, prefix="key_"),
        "name": key.name,
        "created_at": format_datetime(key.created_at),
        "last_used_at": format_datetime(key.last_used_at) if key.last_used_at else None,
    }


class ResendApiKeyViewSet(ResendViewSet[ApiKey]):
    permission_classes = (AdministersWorkspace,)
    queryset = ApiKey.objects.filter(revoked_at=None)
    object_name, id_prefix, item = "api_key", "key_", staticmethod(key_item)

    def get_permissions(self) -> Sequence[Any]:
        # An endpoint that is absent is answered 501 with any key.
        return [] if self.action == "absent" else super().get_permissions()

    def create(self, request: Request) -> Response:
        scope = read_choice(self.body.get("permission"), PERMISSIONS, field="permission")
        key, secret = issue_key_for(
            self.workspace,
            creator=key_of(request),
            name=validate_field(NameField(), self.body.get("name"), name="name"),
            scope=scope or ApiKey.Scope.FULL_ACCESS,
            limits=read_limits(domains=self._domain_names()),
        )
        body = {"id": uuid_text(key.id, prefix=self.id_prefix), "token": secret.text}
        return Response(body, status=status.HTTP_201_CREATED)

    def destroy(self, request: Request, pk: str) -> Response:
        key = self.find(pk)
        revoke_api_key(key)
        return Response(self.reference(key, deleted=True))

    def _domain_names(self) -> list[str]:
        """Return the domain that the new key is limited to."""
        text: Any = self.body.get("domain_id")
        if not text:
            return []
        domains = Domain.objects.filter(workspace=self.workspace)
        return [find_row(domains, pk=from_any_spelling(str(text), prefix="dom_")).name]
