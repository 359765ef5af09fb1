"""SendGrid's API: settings of event webhooks, the workspace's endpoints with the format `sendgrid`.

The paths of the first version of the API have no id; they are about the oldest endpoint.
"""

from typing import Any

from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.errors import NotFound
from core.lib.datetimes import format_datetime
from core.lib.ids import uuid_text
from interfaces.compat.catch_all import RECEIVED
from interfaces.compat.errors import invalid_field
from interfaces.compat.sendgrid.resources import Resource
from interfaces.compat.sendgrid.unsupported import ABSENT_EVENTS, REFUSED_SETTINGS
from interfaces.compat.sendgrid.views import SendGridViewSet
from interfaces.compat.sendgrid.webhook_format import EVENTS, FORMAT, verification_key
from webhooks.models import Webhook
from webhooks.serializers import WebhookChanges, WebhookInput
from webhooks.services import MAX_WEBHOOKS, create_webhook, delete_webhook, lock_webhooks, send_test, update_webhook

# The event of each setting, which has the name that the event has in a body, but for one.
# https://www.twilio.com/docs/sendgrid/api-reference/webhooks
SETTINGS = {name: kind for kind, name in EVENTS.items() if name != "spamreport"} | {"spam_report": "complained"}


class SendGridEventWebhookViewSet(SendGridViewSet[Webhook]):
    # The endpoints of inbound parse have settings of their own.
    queryset = Webhook.objects.filter(format=FORMAT.name).exclude(events=[RECEIVED])
    id_prefix = "wh_"

    def list_all(self, request: Request) -> Response:
        webhooks = [settings_resource(webhook) for webhook in self.get_queryset().order_by("created_at", "id")]
        return Response({"max_allowed": MAX_WEBHOOKS, "webhooks": webhooks})

    def create(self, request: Request) -> Response:
        return Response(settings_resource(self._create()), status=status.HTTP_201_CREATED)

    def retrieve(self, request: Request, pk: str) -> Response:
        return Response(settings_resource(self.find(pk)))

    def update(self, request: Request, pk: str) -> Response:
        with lock_webhooks(self.workspace):
            return Response(settings_resource(self._change(self.find(pk))))

    def destroy(self, request: Request, pk: str) -> Response:
        delete_webhook(self.find(pk))
        return Response(status=status.HTTP_204_NO_CONTENT)

    def retrieve_oldest(self, request: Request) -> Response:
        return Response(settings_resource(self._oldest()))

    def update_oldest(self, request: Request) -> Response:
        with lock_webhooks(self.workspace):
            webhook = self._oldest()
            changed = self._change(webhook) if webhook else self._create()
        return Response(settings_resource(changed))

    def retrieve_key(self, request: Request, pk: str = "") -> Response:
        webhook = self._named(pk)
        return Response({"id": uuid_text(webhook.id, prefix="wh_"), "public_key": _public_key(webhook)})

    def update_key(self, request: Request, pk: str = "") -> Response:
        if self.body.get("enabled") is False:
            raise invalid_field("enabled", "Events are always signed.")
        return self.retrieve_key(request, pk)

    def test(self, request: Request) -> Response:
        given = self.body.get("id")
        webhook = self._named(given if isinstance(given, str) else "")
        if self.body.get("url") not in (None, "", webhook.url):
            raise invalid_field("url", "The test is sent to the URL of the settings.")
        send_test(webhook)
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _oldest(self) -> Webhook | None:
        return self.get_queryset().order_by("created_at", "id").first()

    def _named(self, pk: str) -> Webhook:
        """Return the endpoint with an id, the oldest one without an id. Raises NotFound."""
        webhook = self.find(pk) if pk else self._oldest()
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
        """Return the events after the request, whose settings may be a part of all. Raises InvalidFields."""
        for name in REFUSED_SETTINGS:
            if self.body.get(name):
                raise invalid_field(name, "OAuth is not supported; verify the signature of the events instead.")
        others = [event for event in current if event not in SETTINGS.values()]
        chosen = [event for name, event in SETTINGS.items() if self.body.get(name, event in current) is True]
        return chosen + others

    def _is_active(self, *, default: bool) -> Any:
        return self.body.get("enabled", default)


def settings_resource(webhook: Webhook | None) -> Resource:
    """Return the settings of an endpoint; disabled ones without an endpoint."""
    events = webhook.events if webhook else []
    created_at = format_datetime(webhook.created_at) if webhook else None
    return {
        "enabled": bool(webhook and webhook.active),
        "url": webhook.url if webhook else "",
        **{name: event in events for name, event in SETTINGS.items()},
        **dict.fromkeys(ABSENT_EVENTS, False),
        "friendly_name": None,
        "id": uuid_text(webhook.id, prefix="wh_") if webhook else "",
        "created_date": created_at,
        "updated_date": created_at,
        "oauth_client_id": None,
        "oauth_token_url": None,
        "public_key": _public_key(webhook) if webhook else "",
    }


def _public_key(webhook: Webhook) -> str:
    secret = webhook.secrets.valid().first()
    return verification_key(secret.secret()) if secret else ""
