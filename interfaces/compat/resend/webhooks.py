"""Resend's API: webhooks and the events posted to them."""

import json
from typing import Any

from django.db.models import QuerySet
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from core.lib.datetimes import format_datetime
from core.lib.ids import from_any_spelling, uuid_text
from interfaces.compat.drafts import read_choice
from interfaces.compat.errors import invalid_field
from interfaces.compat.resend.resources import Resource, list_resource
from interfaces.compat.resend.unsupported import ABSENT_EVENTS
from interfaces.compat.resend.views import ResendViewSet
from interfaces.compat.resend.webhook_format import FORMAT, TYPES, resend_type
from interfaces.compat.views import find_row
from webhooks.formats import render_body
from webhooks.models import Webhook, WebhookDelivery, WebhookDeliveryStatus
from webhooks.serializers import WebhookChanges, WebhookInput
from webhooks.services import create_webhook, delete_webhook, replay_delivery, rotate_secret, update_webhook

# Our event type of each of Resend's. One of ours is two of Resend's, which tell a suppressed recipient apart.
# https://resend.com/docs/api-reference/webhooks/create-webhook
SUBSCRIPTIONS = {name: kind for kind, name in TYPES.items()} | {"email.suppressed": "failed"}
# https://resend.com/docs/api-reference/webhooks/update-webhook
STATUSES = {"enabled": True, "disabled": False}
EVENT_STATUSES = {
    WebhookDeliveryStatus.PENDING: "pending",
    WebhookDeliveryStatus.SUCCEEDED: "success",
    WebhookDeliveryStatus.EXHAUSTED: "failed",
    WebhookDeliveryStatus.DISCARDED: "failed",
}


def webhook_item(webhook: Webhook) -> Resource:
    """Return a webhook in a list."""
    return {
        "id": uuid_text(webhook.id, prefix="wh_"),
        "endpoint": webhook.url,
        "events": [name for name, kind in SUBSCRIPTIONS.items() if kind in webhook.events],
        "status": "enabled" if webhook.active else "disabled",
        "created_at": format_datetime(webhook.created_at),
    }


def event_item(delivery: WebhookDelivery) -> Resource:
    """Return an event in a list. Its id is that of the header svix-id, in another spelling."""
    return {
        "id": uuid_text(delivery.event_id, prefix="evt_"),
        "type": resend_type(delivery.kind),
        "created_at": format_datetime(delivery.created_at),
        "status": EVENT_STATUSES[WebhookDeliveryStatus(delivery.status)],
    }


class ResendWebhookViewSet(ResendViewSet[Webhook]):
    queryset = Webhook.objects.all()
    object_name, id_prefix = "webhook", "wh_"
    item, delete_object = staticmethod(webhook_item), staticmethod(delete_webhook)

    def create(self, request: Request) -> Response:
        values = WebhookInput().run_validation({**_read(self.body), "format": FORMAT.name})
        webhook, secret = create_webhook(self.workspace, **values)
        return Response(self.reference(webhook, signing_secret=secret), status=status.HTTP_201_CREATED)

    def retrieve(self, request: Request, pk: str) -> Response:
        # The secret cannot be read again; clients expect a text.
        return Response({"object": self.object_name, **webhook_item(self.find(pk)), "signing_secret": ""})

    def update(self, request: Request, pk: str) -> Response:
        webhook = self.find(pk)
        changes = WebhookChanges().run_validation(_read(self.body))
        return Response(self.reference(update_webhook(webhook, changes=changes)))

    def rotate(self, request: Request, pk: str) -> Response:
        webhook = self.find(pk)
        return Response(self.reference(webhook, signing_secret=rotate_secret(webhook)))


class ResendWebhookEventViewSet(ResendViewSet[WebhookDelivery]):
    """The events of one webhook: our deliveries, with the ids of their events."""

    queryset = WebhookDelivery.objects.select_related("pending")
    object_name, id_prefix, item = "webhook_event", "evt_", staticmethod(event_item)

    def get_queryset(self) -> QuerySet[WebhookDelivery]:
        webhook_id = from_any_spelling(self.kwargs["webhook_id"], prefix="wh_")
        webhook = find_row(self.workspace.webhooks.all(), pk=webhook_id)
        rows = super().get_queryset().filter(webhook=webhook)
        # Lists skip the attempts: each has up to 4 KiB of response.
        return rows.defer("attempts") if self.action == "list" else rows.select_related("event", "webhook")

    def find(self, text: str) -> WebhookDelivery:
        """Return the delivery of an event with an id in either spelling. Raises NotFound."""
        return find_row(self.get_queryset(), event=from_any_spelling(text, prefix=self.id_prefix))

    def retrieve(self, request: Request, webhook_id: str, pk: str) -> Response:
        delivery = self.find(pk)
        payload = json.loads(render_body(delivery.event.body, format_=delivery.webhook.format))
        due_at = delivery.next_attempt_at
        next_attempt_at = format_datetime(due_at) if due_at else None
        item = {**event_item(delivery), "next_attempt_at": next_attempt_at, "payload": payload}
        return Response({"object": self.object_name, **item})

    def replay(self, request: Request, webhook_id: str, pk: str) -> Response:
        delivery = replay_delivery(self.find(pk))
        return Response({"object": self.object_name, "id": event_item(delivery)["id"]})

    def attempts(self, request: Request, webhook_id: str, pk: str) -> Response:
        delivery = self.find(pk)
        return Response(list_resource(enumerate(delivery.attempts), lambda pair: _attempt(delivery, *pair)))


def _read(body: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of `/v1` that a request sets. Raises InvalidFields."""
    native = {
        "url": body.get("endpoint"),
        "events": _read_events(body.get("events")),
        "active": read_choice(body.get("status"), STATUSES, field="active"),
    }
    return {name: value for name, value in native.items() if value is not None}


def _read_events(value: Any) -> Any:
    """Return our event types, without those that never happen here."""
    if not isinstance(value, list):
        return value
    names = [name for name in value if not (isinstance(name, str) and name.startswith(ABSENT_EVENTS))]
    if value and not names:
        raise invalid_field("events", f"None of these events happens here. Use some of {', '.join(SUBSCRIPTIONS)}.")
    return [SUBSCRIPTIONS.get(name, name) if isinstance(name, str) else name for name in names]


def _attempt(delivery: WebhookDelivery, number: int, attempt: dict[str, Any]) -> Resource:
    """Return an attempt; its status is 0 if no response arrived."""
    return {
        "id": f"{uuid_text(delivery.event_id, prefix='evt_')}.{number}",
        "http_status_code": attempt["statusCode"] or 0,
        "response": attempt["answer"] or attempt["error"] or "",
        "sent_at": attempt["at"],
    }
