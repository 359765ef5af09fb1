"""SendGrid's API: settings of inbound parse, and its statistics.

A setting is the catch-all route of a domain with one endpoint of the format `sendgrid` (docs/decisions/0242).
"""

from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.errors import NotFound
from interfaces.compat.catch_all import ALL, RECEIVED, find_catch_all, receive_domain, save_catch_all
from interfaces.compat.drafts import rename_fields
from interfaces.compat.errors import invalid_field
from interfaces.compat.sendgrid.resources import Resource
from interfaces.compat.sendgrid.stats import read_days
from interfaces.compat.sendgrid.views import SendGridViewSet
from interfaces.compat.sendgrid.webhook_format import FORMAT
from receiving.arrival.usage import received_by_day
from receiving.models import InboundRoute
from receiving.services import delete_route
from webhooks.models import Webhook
from webhooks.serializers import WebhookChanges, WebhookInput
from webhooks.services import create_webhook, delete_webhook, lock_webhooks, update_webhook

NAME = "Inbound parse"
FIELDS = {"send_raw": "include_raw", "spam_check": "spam_report"}
NO_SPAM_FILTER = "This installation has no spam filter. Leave spam_check out."


class SendGridParseViewSet(SendGridViewSet[InboundRoute]):
    queryset = InboundRoute.objects.filter(match=ALL)

    def list(self, request: Request) -> Response:
        webhooks = {webhook.id: webhook for webhook in self._webhooks()}
        settings_ = [(route, _endpoint(route, webhooks)) for route in self.get_queryset()]
        return Response({"result": [parse_resource(route, webhook) for route, webhook in settings_ if webhook]})

    def create(self, request: Request) -> Response:
        with lock_webhooks(self.workspace):
            hostname = receive_domain(self.workspace, self.body.get("hostname"), field="hostname")
            if find_catch_all(self.workspace, hostname):
                raise invalid_field("hostname", "All email of this domain has a route already.")
            native = {"url": self.body.get("url"), "events": [RECEIVED], "format": FORMAT.name}
            webhook, _ = create_webhook(self.workspace, **WebhookInput().run_validation(native))
            values = {"webhook_ids": [webhook.id], **_read(self.body)}
            route = save_catch_all(self.workspace, hostname, name=NAME, values=values)
        return Response(parse_resource(route, webhook), status=status.HTTP_201_CREATED)

    def retrieve(self, request: Request, hostname: str) -> Response:
        return Response(parse_resource(*self._setting(hostname)))

    def partial_update(self, request: Request, hostname: str) -> Response:
        with lock_webhooks(self.workspace):
            route, webhook = self._setting(hostname)
            if self.body.get("hostname") not in (None, hostname):
                raise invalid_field("hostname", "The hostname of a setting cannot be changed. Create another one.")
            if self.body.get("url") is not None:
                update_webhook(webhook, changes=WebhookChanges().run_validation({"url": self.body["url"]}))
            route = save_catch_all(self.workspace, route.domain, name=NAME, values=_read(self.body))
        return Response(parse_resource(route, webhook))

    def destroy(self, request: Request, hostname: str) -> Response:
        with lock_webhooks(self.workspace):
            route, webhook = self._setting(hostname)
            delete_route(route)
            if not InboundRoute.objects.filter(workspace=self.workspace, webhook_ids__contains=[webhook.id]).exists():
                delete_webhook(webhook)
        return Response(status=status.HTTP_204_NO_CONTENT)

    def stats(self, request: Request) -> Response:
        days = received_by_day(self.workspace, *read_days(request))
        return Response([{"date": day.isoformat(), "stats": [{"metrics": {"received": count}}]} for day, count in days])

    def _webhooks(self) -> QuerySet[Webhook]:
        return self.workspace.webhooks.filter(format=FORMAT.name)

    def _setting(self, hostname: str) -> tuple[InboundRoute, Webhook]:
        """Return the route and the endpoint of a setting. Raises NotFound."""
        for route in self.get_queryset().filter(domain=hostname.lower()):
            if webhook := _endpoint(route, {webhook.id: webhook for webhook in self._webhooks()}):
                return route, webhook
        raise NotFound


def _endpoint(route: InboundRoute, webhooks: dict[str, Webhook]) -> Webhook | None:
    """Return the only endpoint of a route, if it has the format of this dialect."""
    return webhooks.get(route.webhook_ids[0]) if len(route.webhook_ids) == 1 else None


def parse_resource(route: InboundRoute, webhook: Webhook) -> Resource:
    return {
        "url": webhook.url,
        "hostname": route.domain,
        "spam_check": bool(settings.RSPAMD_URL) and route.spam_report,
        "send_raw": route.include_raw,
    }


def _read(body: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a route that a request sets. Raises InvalidFields."""
    for name in FIELDS:
        if not isinstance(body.get(name, False), bool):
            raise invalid_field(name, "This must be true or false.")
    if body.get("spam_check") and not settings.RSPAMD_URL:
        raise invalid_field("spam_check", NO_SPAM_FILTER)
    return rename_fields(body, FIELDS)
