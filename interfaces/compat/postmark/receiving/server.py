"""Postmark's API: the server, whose settings about received email are catch-all routes with one endpoint.

The routes are those of the workspace's own address and of the inbound domain (docs/decisions/0242).
"""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.fields import NameField
from core.workspaces.api.authentication import key_of
from core.workspaces.models import ApiKey, Workspace
from core.workspaces.services import rename_workspace
from interfaces.compat.catch_all import ALL, RECEIVED, find_catch_all, receive_domain, save_catch_all
from interfaces.compat.drafts import validate_field
from interfaces.compat.errors import invalid_field
from interfaces.compat.postmark.resources import Resource, server_resource
from interfaces.compat.postmark.views import PostmarkViewSet
from interfaces.compat.postmark.webhook_auth import read_headers, without_password
from interfaces.compat.postmark.webhook_format import FORMAT
from receiving.arrival.shared_addresses import shared_address
from receiving.models import SHARED, InboundRoute
from webhooks.models import Webhook
from webhooks.serializers import WebhookChanges, WebhookInput
from webhooks.services import create_webhook, delete_webhook, lock_webhooks, update_webhook

NAME = "Inbound"
CHANGEABLE = ("Name", "InboundHookUrl", "InboundDomain", "RawEmailEnabled", "InboundSpamThreshold")
NO_ADDRESS = "Set InboundDomain as well: this service gives servers no address of their own."
MAX_THRESHOLD = 30


class PostmarkServerViewSet(PostmarkViewSet[InboundRoute]):
    queryset = InboundRoute.objects.filter(match=ALL)

    def retrieve(self, request: Request) -> Response:
        return Response(self._resource())

    def update(self, request: Request) -> Response:
        with lock_webhooks(self.workspace):
            self._refuse_others()
            self._change()
            return Response(self._resource())

    def _resource(self) -> Resource:
        return {**server_resource(self.workspace), **inbound_members(self.workspace)}

    def _refuse_others(self) -> None:
        """Raise InvalidFields for a setting that differs and cannot be changed."""
        current = self._resource()
        for name, value in self.body.items():
            if name not in CHANGEABLE and (name not in current or value != current[name]):
                raise invalid_field(name, f"This cannot be changed here. Use some of {', '.join(CHANGEABLE)}.")

    def _change(self) -> None:
        values, hook = _read_values(self.body), find_hook(self.workspace)
        self._rename()
        domains = self._domains()
        if "InboundHookUrl" in self.body:
            if self.body["InboundHookUrl"] and not domains:
                raise invalid_field("InboundHookUrl", NO_ADDRESS)
            hook = _save_hook(self.workspace, self.body["InboundHookUrl"], hook=hook)
            values["webhook_ids"] = [hook.id] if hook else []
        elif hook:
            values["webhook_ids"] = [hook.id]
        for domain in domains:
            save_catch_all(self.workspace, domain, name=NAME, values=values)

    def _rename(self) -> None:
        name = self.body.get("Name", self.workspace.name)
        if name == self.workspace.name:
            return
        if key_of(self.request).scope != ApiKey.Scope.WORKSPACE_ADMIN:
            raise invalid_field("Name", "Only a key with the scope workspace_admin can rename the workspace.")
        rename_workspace(self.workspace, name=validate_field(NameField(), name, name="Name"))
        self.workspace.refresh_from_db(fields=["name"])

    def _domains(self) -> list[str]:
        """Return the domains whose routes the request changes. Raises InvalidFields."""
        given = self.body.get("InboundDomain")
        route = find_domain_route(self.workspace)
        domain = receive_domain(self.workspace, given, field="InboundDomain") if given else route and route.domain
        if given == "" and route:
            route.delete()
            domain = None
        return [name for name in (SHARED if settings.RECEIVING_DOMAIN else None, domain) if name]


def find_hook(workspace: Workspace) -> Webhook | None:
    """Return the endpoint of the server's routes: the only one of a route, for received emails in this format."""
    ids = [route.webhook_ids[0] for route in _routes(workspace) if len(route.webhook_ids) == 1]
    hooks = Webhook.objects.filter(workspace=workspace, format=FORMAT.name, events=[RECEIVED], id__in=ids)
    return hooks.order_by("created_at", "id").first()


def _routes(workspace: Workspace) -> list[InboundRoute]:
    """Return the routes of the server: those of the workspace's own address and of the inbound domain."""
    routes = (find_catch_all(workspace, SHARED), find_domain_route(workspace))
    return [route for route in routes if route]


def _is_shared(hook: Webhook) -> bool:
    """Return whether routes other than those of the server have the endpoint, too."""
    own = [route.id for route in _routes(hook.workspace)]
    routes = InboundRoute.objects.filter(workspace=hook.workspace_id, webhook_ids__contains=[hook.id])
    return routes.exclude(id__in=own).exists()


def find_domain_route(workspace: Workspace) -> InboundRoute | None:
    """Return the catch-all route of a domain of the workspace: the first one with the name of the server's routes."""
    routes = InboundRoute.objects.filter(workspace=workspace, match=ALL, name=NAME).exclude(domain=SHARED)
    return routes.first()


def inbound_members(workspace: Workspace) -> Resource:
    """Return the members of the server about received email."""
    address, route, hook = shared_address(workspace), find_domain_route(workspace), find_hook(workspace)
    shown = route or find_catch_all(workspace, SHARED)
    return {
        "InboundAddress": address or "",
        "InboundHash": (address or "").partition("@")[0],
        "InboundDomain": route.domain if route else "",
        "InboundHookUrl": hook.url if hook else "",
        "RawEmailEnabled": bool(shown and shown.include_raw),
        "InboundSpamThreshold": int((shown and shown.spam_above) or 0),
    }


def _read_values(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a route that a request sets. Raises InvalidFields."""
    values: dict[str, Any] = {}
    if "RawEmailEnabled" in body:
        if not isinstance(body["RawEmailEnabled"], bool):
            raise invalid_field("RawEmailEnabled", "This must be true or false.")
        values["include_raw"] = body["RawEmailEnabled"]
    if "InboundSpamThreshold" in body:
        threshold = body["InboundSpamThreshold"]
        if isinstance(threshold, bool) or not isinstance(threshold, int) or not 0 <= threshold <= MAX_THRESHOLD:
            raise invalid_field("InboundSpamThreshold", f"This must be a number from 0 to {MAX_THRESHOLD}.")
        values["spam_above"] = float(threshold) or None
    return values


def _save_hook(workspace: Workspace, url: Any, *, hook: Webhook | None) -> Webhook | None:
    """Create, change or delete the endpoint of the server's routes. User and password of the URL become a header.

    hook: the present one, which stays as it is if other routes have it.
    """
    if hook and _is_shared(hook):
        hook = None
    if not url:
        if hook:
            delete_webhook(hook)
        return None
    native = {"url": without_password(url)}
    native |= read_headers({"Url": url}, current=hook.readable_headers if hook else {})
    if hook:
        return update_webhook(hook, changes=WebhookChanges().run_validation(native))
    values = WebhookInput().run_validation({**native, "events": [RECEIVED], "format": FORMAT.name})
    return create_webhook(workspace, **values)[0]
