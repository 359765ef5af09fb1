"""SendGrid's API: settings of the event webhook, the workspace's oldest endpoint with the format `sendgrid`."""

from typing import Any

from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from api.errors import NotFound
from compat.errors import invalid_field
from compat.sendgrid.resources import Resource
from compat.sendgrid.unsupported import ABSENT_EVENTS
from compat.sendgrid.views import SendGridViewSet
from compat.sendgrid.webhook_format import EVENTS, FORMAT, verification_key
from webhooks.models import Webhook
from webhooks.serializers import WebhookChanges, WebhookInput
from webhooks.services import create_webhook, lock_webhooks, send_test, update_webhook

# The event of each setting, which has the name that the event has in a body, but for one.
# https://www.twilio.com/docs/sendgrid/api-reference/webhooks
SETTINGS = {name: kind for kind, name in EVENTS.items() if name != "spamreport"} | {"spam_report": "complained"}


class SendGridEventWebhookViewSet(SendGridViewSet[Webhook]):
    queryset = Webhook.objects.filter(format=FORMAT.name)

    def retrieve(self, request: Request) -> Response:
        return Response(settings_resource(self._webhook()))

    def update(self, request: Request) -> Response:
        with lock_webhooks(self.workspace):
            webhook = self._webhook()
            changed = self._change(webhook) if webhook else self._create()
        return Response(settings_resource(changed))

    def retrieve_key(self, request: Request) -> Response:
        secret = self._existing().secrets.valid().first()
        return Response({"public_key": verification_key(secret.secret()) if secret else ""})

    def update_key(self, request: Request) -> Response:
        if self.body.get("enabled") is False:
            raise invalid_field("enabled", "Events are always signed.")
        return self.retrieve_key(request)

    def test(self, request: Request) -> Response:
        webhook = self._existing()
        if self.body.get("url") not in (None, "", webhook.url):
            raise invalid_field("url", "The test is sent to the URL of the settings.")
        send_test(webhook)
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _webhook(self) -> Webhook | None:
        return self.get_queryset().order_by("created_at", "id").first()

    def _existing(self) -> Webhook:
        webhook = self._webhook()
        if webhook is None:
            raise NotFound("There is no event webhook. Set its URL first.")
        return webhook

    def _create(self) -> Webhook:
        native = {"url": self.body.get("url"), "events": self._events([]), "format": FORMAT.name}
        webhook, _ = create_webhook(self.workspace, **WebhookInput().run_validation(native))
        return webhook if self._is_active(default=True) else update_webhook(webhook, changes={"active": False})

    def _change(self, webhook: Webhook) -> Webhook:
        native = {
            "url": self.body.get("url") or webhook.url,
            "events": self._events(webhook.events),
            "active": self._is_active(default=webhook.active),
        }
        return update_webhook(webhook, changes=WebhookChanges().run_validation(native))

    def _events(self, current: list[str]) -> list[str]:
        """Return the events after the request, whose settings may be a part of all."""
        return [event for name, event in SETTINGS.items() if self.body.get(name, event in current) is True]

    def _is_active(self, *, default: bool) -> Any:
        return self.body.get("enabled", default)


def settings_resource(webhook: Webhook | None) -> Resource:
    events = webhook.events if webhook else []
    return {
        "enabled": bool(webhook and webhook.active),
        "url": webhook.url if webhook else "",
        **{name: event in events for name, event in SETTINGS.items()},
        **dict.fromkeys(ABSENT_EVENTS, False),
    }
