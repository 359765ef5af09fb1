"""`/v1/webhooks` in the OpenAPI document."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema_view
from rest_framework import serializers

from api.schema import ID, NOT_FOUND, VALIDATION_ERROR, DeletedSerializer, page_of, paging, query, response
from api.schema_fields import refine_schema, set_field_schema
from lib.guarded_http import MAX_URL_LENGTH
from webhooks.event_types import EVENT_TYPES, TYPE_PREFIX
from webhooks.models import WebhookDeliveryStatus
from webhooks.serializers import (
    AttemptSerializer,
    DeliveryItemSerializer,
    DeliverySerializer,
    EventTypeField,
    TargetField,
    WebhookChanges,
    WebhookInput,
    WebhookSerializer,
)
from workspaces.api.schema import FULL, PLAN_LIMIT_REACHED, READING, keyed_operation

DATE_TIME = {"type": "string", "format": "date-time"}
EVENT_TYPE = {"type": "string", "enum": [*EVENT_TYPES, *(TYPE_PREFIX + kind for kind in EVENT_TYPES)]}

set_field_schema(
    TargetField, {"type": "string", "format": "uri", "pattern": "^[Hh][Tt][Tt][Pp]", "maxLength": MAX_URL_LENGTH}
)
set_field_schema(EventTypeField, EVENT_TYPE)
refine_schema(WebhookInput, properties={"events": {"minItems": 1}})
refine_schema(WebhookChanges, properties={"events": {"minItems": 1}})
refine_schema(AttemptSerializer, properties={"at": DATE_TIME})


class WebhookWithSecret(WebhookSerializer):
    """The two responses that contain the secret."""

    secret = serializers.CharField()

    class Meta(WebhookSerializer.Meta):
        fields = (*WebhookSerializer.Meta.fields, "secret")  # type: ignore[assignment]  # one more than its parent's


refine_schema(WebhookWithSecret, properties={"secret": {"type": "string", "pattern": "^whsec_[A-Za-z0-9+/]{43}=$"}})

WEBHOOK: dict[str, Any] = {
    "id": "wh_0Uf7p4Lm9XsRdT2bVhYkNc",
    "url": "https://example.com/hooks/email",
    "events": ["delivered", "bounced"],
    "active": True,
    "disabledReason": None,
    "createdAt": "2026-11-20T08:12:44.102Z",
}
SECRET = "whsec_239wFAPcARd6kiim2nsbIiBl1aErCwb5gYvR7vg2ZTc="  # noqa: S105 - the documentation's example
DELIVERY: dict[str, Any] = {
    "id": "whd_0Uf8c7Qw2ErTyUiOpAsDfG",
    "webhookId": WEBHOOK["id"],
    "eventId": "evt_0Uf8c7QhJkLzXcVbNmQwEr",
    "event": "bounced",
    "test": False,
    "status": "pending",
    "attemptCount": 1,
    "statusCode": 503,
    "error": "status",
    "nextAttemptAt": "2026-11-21T06:20:05.730Z",
    "createdAt": "2026-11-21T06:20:00.412Z",
    "succeededAt": None,
}
BODY = (
    '{"id":"evt_0Uf8c7QhJkLzXcVbNmQwEr","type":"email.bounced","event":"bounced","createdAt":"2026-11-21T06:20:00.412Z",'
    '"data":{"emailId":"0Uf8c5MnBvCxZaSdFgHjKl","to":"ada@example.com","from":"hello@demo.example","subject":"Hello",'
    '"status":"bounced","tags":[],"metadata":null,"code":550,"enhancedCode":"5.1.1","message":"5.1.1 No such user",'
    '"reason":"unknown_user"}}'
)
ATTEMPT = {
    "at": "2026-11-21T06:20:00.448Z",
    "durationMs": 87,
    "statusCode": 503,
    "error": "status",
    "answer": "<h1>Service Unavailable</h1>",
}
FULL_DELIVERY = {**DELIVERY, "attempts": [ATTEMPT], "body": BODY}
NEW_DELIVERY = {"attemptCount": 0, "statusCode": None, "error": None, "nextAttemptAt": "2026-11-21T06:31:12.009Z"}
WEBHOOK_ID = OpenApiParameter(
    "webhook_id", {"type": "string", "pattern": f"^wh_{ID}$"}, OpenApiParameter.PATH, description="The webhook."
)

webhooks_schema = extend_schema_view(
    list=keyed_operation(
        "listWebhooks",
        "List webhooks",
        "Returns the workspace's webhooks, newest first. `disabledReason` explains why a webhook was disabled "
        "automatically.",
        scope=READING,
        responses=[
            response(
                200,
                page_of(WebhookSerializer, name="WebhookPage"),
                "A page of webhooks.",
                example={"data": [WEBHOOK], "total": 1, "page": 1, "limit": 20},
            )
        ],
        problems=[VALIDATION_ERROR],
        parameters=paging(default=20),
    ),
    create=keyed_operation(
        "createWebhook",
        "Create a webhook",
        "Starts posting events of the given types to the URL, which must be https, on port 443, at a public address. "
        "The response contains the `secret` for [verifying signatures](#section/Webhooks); it cannot be read again. A "
        f"workspace can have up to 20 webhooks. Event types may also be given as `{TYPE_PREFIX}bounced`. A URL that "
        "is not allowed fails with `forbidden_target` on the field `url`.",
        scope=FULL,
        body=WebhookInput,
        bodies={"A webhook": {"url": WEBHOOK["url"], "events": ["delivered", "bounced"]}},
        responses=[response(201, WebhookWithSecret, "The webhook was created.", example={**WEBHOOK, "secret": SECRET})],
        problems=[PLAN_LIMIT_REACHED],
    ),
    retrieve=keyed_operation(
        "getWebhook",
        "Get a webhook",
        "Returns one webhook, without its secret.",
        scope=READING,
        responses=[response(200, WebhookSerializer, "The webhook.", example=WEBHOOK)],
        problems=[NOT_FOUND],
    ),
    partial_update=keyed_operation(
        "updateWebhook",
        "Change a webhook",
        "Changes the given fields. Setting `active` to false stops posting and marks pending deliveries as "
        "`discarded`; they can be replayed. Setting `active` to true clears `disabledReason`.",
        scope=FULL,
        body=WebhookChanges,
        bodies={"Enable it again": {"active": True}, "Another URL": {"url": "https://example.com/hooks/new"}},
        responses=[response(200, WebhookSerializer, "The updated webhook.", example=WEBHOOK)],
        problems=[NOT_FOUND],
    ),
    destroy=keyed_operation(
        "deleteWebhook",
        "Delete a webhook",
        "Deletes the webhook with its deliveries and stops posting.",
        scope=FULL,
        responses=[
            response(200, DeletedSerializer, "The webhook was deleted.", example={"id": WEBHOOK["id"], "deleted": True})
        ],
        problems=[NOT_FOUND],
    ),
    test=keyed_operation(
        "testWebhook",
        "Test a webhook",
        "Posts a sample event at once, of the first event type that the webhook subscribes to, even if the webhook is "
        "disabled. Its body has `test: true`; everything else, including signatures and retries, works as for a "
        "real event.",
        scope=FULL,
        responses=[
            response(
                202,
                DeliveryItemSerializer,
                "The delivery of the sample. Retrieve it later to see its result.",
                example={**DELIVERY, **NEW_DELIVERY, "test": True, "createdAt": NEW_DELIVERY["nextAttemptAt"]},
            )
        ],
        problems=[NOT_FOUND, VALIDATION_ERROR],
    ),
    rotate_secret=keyed_operation(
        "rotateWebhookSecret",
        "Rotate the secret",
        "Creates a new secret and returns it once. For 24 hours both secrets sign: the new one in "
        "`x-service-signature`, the old one in `x-service-signature-previous`, and both in `webhook-signature`.",
        scope=FULL,
        responses=[response(200, WebhookWithSecret, "The new secret.", example={**WEBHOOK, "secret": SECRET})],
        problems=[NOT_FOUND],
    ),
)

deliveries_schema = extend_schema_view(
    list=keyed_operation(
        "listDeliveries",
        "List deliveries",
        "Returns the deliveries of a webhook, including pending ones, newest first.",
        scope=READING,
        responses=[
            response(
                200,
                page_of(DeliveryItemSerializer, name="DeliveryPage"),
                "A page of deliveries.",
                example={"data": [DELIVERY], "total": 1, "page": 1, "limit": 20},
            )
        ],
        problems=[NOT_FOUND, VALIDATION_ERROR],
        parameters=[
            WEBHOOK_ID,
            *paging(default=20),
            query("status", {"enum": WebhookDeliveryStatus.values}, "Only deliveries with this status."),
            query("event", EVENT_TYPE, "Only events of this type."),
        ],
    ),
    retrieve=keyed_operation(
        "getDelivery",
        "Get a delivery",
        "Returns one delivery with its body (the same bytes for every attempt) and the last 20 attempts. `answer` is "
        "the first 4 KiB of the response; `error` is null for a success.",
        scope=READING,
        responses=[response(200, DeliverySerializer, "The delivery.", example=FULL_DELIVERY)],
        problems=[NOT_FOUND],
        parameters=[WEBHOOK_ID],
    ),
    replay=keyed_operation(
        "replayDelivery",
        "Replay a delivery",
        "Posts the event again at once, with the same body and id and a new signature. This works for any "
        "delivery status and for a disabled webhook. A pending delivery is attempted now instead of later. Earlier "
        "attempts stay in the log.",
        scope=FULL,
        responses=[
            response(
                200,
                DeliveryItemSerializer,
                "The updated delivery.",
                example={**DELIVERY, "nextAttemptAt": NEW_DELIVERY["nextAttemptAt"]},
            )
        ],
        problems=[NOT_FOUND],
        parameters=[WEBHOOK_ID],
    ),
)
