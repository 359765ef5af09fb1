"""Postmark's API: webhooks, which are the workspace's endpoints with the format `postmark`."""

from collections.abc import Collection
from typing import Any

from django.db.models import Q
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.errors import NotFound
from core.lib.ids import id_number
from events.kinds import WEBHOOK_KINDS
from interfaces.compat.catch_all import RECEIVED
from interfaces.compat.drafts import as_object, rename_fields
from interfaces.compat.postmark.names import OUTBOUND, read_id, shown_id
from interfaces.compat.postmark.resources import Resource
from interfaces.compat.postmark.views import PostmarkViewSet
from interfaces.compat.postmark.webhook_auth import read_headers, shown_headers, without_password
from interfaces.compat.postmark.webhook_format import FORMAT
from webhooks.models import Webhook
from webhooks.serializers import EventTypesField, WebhookChanges, WebhookInput
from webhooks.services import create_webhook, delete_webhook, lock_webhooks, update_webhook

FIELDS = {"Url": "url"}
# The events of each trigger.
# https://postmarkapp.com/developer/api/webhooks-api
TRIGGERS = {
    "Open": frozenset({"opened"}),
    "Click": frozenset({"clicked"}),
    "Delivery": frozenset({"delivered"}),
    "Bounce": frozenset({"bounced", "failed", "deferred"}),
    "SpamComplaint": frozenset({"complained"}),
    "SubscriptionChange": frozenset({"unsubscribed"}),
}
TRIGGER_OPTIONS = {
    "Open": {"PostFirstOpenOnly": True},
    "Bounce": {"IncludeContent": False},
    "SpamComplaint": {"IncludeContent": False},
}


class AnyEventsField(EventTypesField):
    """Events of a webhook that may have no trigger yet."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.allow_empty = True


class PostmarkWebhookInput(WebhookInput):
    events = AnyEventsField()


class PostmarkWebhookChanges(WebhookChanges):
    events = AnyEventsField(required=False)


class PostmarkWebhookViewSet(PostmarkViewSet[Webhook]):
    # The endpoint of received emails is a setting of the server.
    queryset = Webhook.objects.filter(format=FORMAT.name).exclude(events=[RECEIVED])
    id_prefix = "wh_"

    def list(self, request: Request) -> Response:
        query = {name.lower(): text for name, text in request.query_params.dict().items()}
        rows = self.get_queryset()
        if query.get("messagestream"):
            rows = rows.filter(Q(streams=[]) | Q(streams__contains=[read_id(query["messagestream"])]))
        return Response({"Webhooks": [webhook_resource(webhook) for webhook in rows]})

    def create(self, request: Request) -> Response:
        native = {"events": read_events(self.body, current=()), "format": FORMAT.name}
        native |= read_fields(self.body) | read_headers(self.body, current={})
        webhook, _ = create_webhook(self.workspace, **PostmarkWebhookInput().run_validation(native))
        return Response(webhook_resource(webhook))

    def retrieve(self, request: Request, number: str) -> Response:
        return Response(webhook_resource(self.find_number(number)))

    def find_number(self, number: str) -> Webhook:
        try:
            return super().find_number(number)
        except NotFound as error:
            raise NotFound("The webhook for the provided 'ID' was not found.") from error

    def update(self, request: Request, number: str) -> Response:
        with lock_webhooks(self.workspace):
            webhook = self.find_number(number)
            native = {"events": read_events(self.body, current=webhook.events)} | read_fields(self.body)
            native |= read_headers(self.body, current=webhook.readable_headers)
            update_webhook(webhook, changes=PostmarkWebhookChanges().run_validation(native))
        return Response(webhook_resource(webhook))

    def destroy(self, request: Request, number: str) -> Response:
        delete_webhook(self.find_number(number))
        return Response({"ErrorCode": 0, "Message": f"Webhook {number} removed."})


def read_events(body: dict[str, Any], *, current: Collection[str]) -> list[str]:
    """Return the events after a request: the current ones, and changes by the triggers given."""
    events = set(current)
    for name, trigger in as_object(body.get("Triggers"), "Triggers").items():
        is_enabled = as_object(trigger, f"Triggers.{name}").get("Enabled") is True
        change = events.update if is_enabled else events.difference_update
        change(TRIGGERS.get(name, frozenset()))
    return [event for event in WEBHOOK_KINDS if event in events]


def read_fields(body: dict[str, Any]) -> dict[str, Any]:
    """Return the other fields of `/v1` that a request sets. Without a stream, all have their events."""
    stream, fields = body.get("MessageStream"), rename_fields(body, FIELDS)
    url = {"url": without_password(fields["url"])} if "url" in fields else {}
    return {**fields, **url, **({"streams": [read_id(stream)]} if stream else {})}


def webhook_resource(webhook: Webhook) -> Resource:
    return {
        "ID": id_number(webhook.id, prefix="wh_"),
        "Url": webhook.url,
        "MessageStream": shown_id(webhook.streams[0]) if webhook.streams else OUTBOUND,
        **shown_headers(webhook.readable_headers),
        "Triggers": {
            name: {"Enabled": events <= set(webhook.events), **TRIGGER_OPTIONS.get(name, {})}
            for name, events in TRIGGERS.items()
        },
    }
