"""`/v1/webhooks` in the OpenAPI document."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema_view
from rest_framework import serializers

from api.schema import ID, NOT_FOUND, VALIDATION_ERROR, DeletedSerializer, answer, page_of, paging, query
from api.schema_fields import refine, show_as
from lib.guarded_http import MAX_URL_LENGTH
from webhooks.event_types import KINDS, PREFIX
from webhooks.models import WebhookDelivery
from webhooks.serializers import (
    AttemptSerializer,
    DeliveryItemSerializer,
    DeliverySerializer,
    KindField,
    TargetField,
    WebhookChanges,
    WebhookInput,
    WebhookSerializer,
)
from workspaces.api.schema import FULL, PLAN_LIMIT_REACHED, READING, keyed_operation

MOMENT = {"type": "string", "format": "date-time"}
KIND = {"type": "string", "enum": [*KINDS, *(PREFIX + kind for kind in KINDS)]}

show_as(TargetField, {"type": "string", "format": "uri", "pattern": "^[Hh][Tt][Tt][Pp]", "maxLength": MAX_URL_LENGTH})
show_as(KindField, KIND)
refine(WebhookInput, properties={"events": {"minItems": 1}})
refine(WebhookChanges, properties={"events": {"minItems": 1}})
refine(AttemptSerializer, properties={"at": MOMENT})


class WebhookWithSecret(WebhookSerializer):
    """The two answers that tell the secret."""

    secret = serializers.CharField()

    class Meta(WebhookSerializer.Meta):
        fields = (*WebhookSerializer.Meta.fields, "secret")  # type: ignore[assignment]  # one more than its parent's


refine(WebhookWithSecret, properties={"secret": {"type": "string", "pattern": "^whsec_[A-Za-z0-9+/]{43}=$"}})

WEBHOOK: dict[str, Any] = {
    "id": "wh_0Uf7p4Lm9XsRdT2bVhYkNc",
    "url": "https://example.com/hooks/email",
    "events": ["delivered", "bounced"],
    "active": True,
    "disabledReason": None,
    "createdAt": "2026-11-20T08:12:44.102Z",
}
SECRET = "whsec_239wFAPcARd6kiim2nsbIiBl1aErCwb5gYvR7vg2ZTc="  # noqa: S105 - of the documentation
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
WHOLE_DELIVERY = {**DELIVERY, "attempts": [ATTEMPT], "body": BODY}
FRESH = {"attemptCount": 0, "statusCode": None, "error": None, "nextAttemptAt": "2026-11-21T06:31:12.009Z"}
OF_WEBHOOK = OpenApiParameter(
    "webhook_id", {"type": "string", "pattern": f"^wh_{ID}$"}, OpenApiParameter.PATH, description="The webhook."
)

webhooks_schema = extend_schema_view(
    list=keyed_operation(
        "listWebhooks",
        "List webhooks",
        "Returns the workspace's webhooks, newest first. `disabledReason` tells why one was turned off that nobody "
        "turned off by hand.",
        scope=READING,
        answers=[
            answer(
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
        "From now on events of these kinds are posted to the URL: https, on port 443, at a public address. The "
        "`secret`, with which you verify what arrives, is told here and never again; "
        "[how to verify](#section/Webhooks). A "
        f"workspace has up to 20 webhooks. Kinds may be given as `{PREFIX}bounced`, too. A URL that is not called is "
        "refused with `forbidden_target` on the field `url`.",
        scope=FULL,
        body=WebhookInput,
        bodies={"A webhook": {"url": WEBHOOK["url"], "events": ["delivered", "bounced"]}},
        answers=[answer(201, WebhookWithSecret, "The webhook is on.", example={**WEBHOOK, "secret": SECRET})],
        problems=[PLAN_LIMIT_REACHED],
    ),
    retrieve=keyed_operation(
        "getWebhook",
        "Get a webhook",
        "Returns one webhook, without its secret.",
        scope=READING,
        answers=[answer(200, WebhookSerializer, "The webhook.", example=WEBHOOK)],
        problems=[NOT_FOUND],
    ),
    partial_update=keyed_operation(
        "updateWebhook",
        "Change a webhook",
        "Changes the fields that are given. With `active` false nothing more is posted, and what waits is "
        "`discarded`; it can be replayed. With `active` true the reason for which it was turned off is forgotten.",
        scope=FULL,
        body=WebhookChanges,
        bodies={"Turn it on again": {"active": True}, "Another URL": {"url": "https://example.com/hooks/new"}},
        answers=[answer(200, WebhookSerializer, "The webhook as it is now.", example=WEBHOOK)],
        problems=[NOT_FOUND],
    ),
    destroy=keyed_operation(
        "deleteWebhook",
        "Delete a webhook",
        "Deletes the webhook with its deliveries; nothing more is posted.",
        scope=FULL,
        answers=[
            answer(200, DeletedSerializer, "The webhook is gone.", example={"id": WEBHOOK["id"], "deleted": True})
        ],
        problems=[NOT_FOUND],
    ),
    test=keyed_operation(
        "testWebhook",
        "Test a webhook",
        "Posts a sample event at once, of the first kind that the webhook subscribed to, whether it is on or off. "
        "Its body has `test: true`; everything else, signatures and retries included, is as for a real one.",
        scope=FULL,
        answers=[
            answer(
                202,
                DeliveryItemSerializer,
                "The delivery of the sample; ask for it again to see how it went.",
                example={**DELIVERY, **FRESH, "test": True, "createdAt": FRESH["nextAttemptAt"]},
            )
        ],
        problems=[NOT_FOUND, VALIDATION_ERROR],
    ),
    rotate_secret=keyed_operation(
        "rotateWebhookSecret",
        "Rotate the secret",
        "Makes a new secret, which is told here and never again. For 24 hours both sign: the new one in "
        "`x-service-signature`, the old one in `x-service-signature-previous`, and both in `webhook-signature`.",
        scope=FULL,
        answers=[answer(200, WebhookWithSecret, "The new secret.", example={**WEBHOOK, "secret": SECRET})],
        problems=[NOT_FOUND],
    ),
)

deliveries_schema = extend_schema_view(
    list=keyed_operation(
        "listDeliveries",
        "List deliveries",
        "Returns what was posted to a webhook, or is about to be, newest first.",
        scope=READING,
        answers=[
            answer(
                200,
                page_of(DeliveryItemSerializer, name="DeliveryPage"),
                "A page of deliveries.",
                example={"data": [DELIVERY], "total": 1, "page": 1, "limit": 20},
            )
        ],
        problems=[NOT_FOUND, VALIDATION_ERROR],
        parameters=[
            OF_WEBHOOK,
            *paging(default=20),
            query("status", {"enum": WebhookDelivery.Status.values}, "Only deliveries in this state."),
            query("event", KIND, "Only events of this kind."),
        ],
    ),
    retrieve=keyed_operation(
        "getDelivery",
        "Get a delivery",
        "Returns one delivery with its body, the same bytes on every attempt, and the last 20 attempts: `answer` has "
        "the first 4 KiB of what came back, `error` is null for a success.",
        scope=READING,
        answers=[answer(200, DeliverySerializer, "The delivery.", example=WHOLE_DELIVERY)],
        problems=[NOT_FOUND],
        parameters=[OF_WEBHOOK],
    ),
    replay=keyed_operation(
        "replayDelivery",
        "Replay a delivery",
        "Posts the event again at once: the same body under the same id, newly signed, with all attempts before it. "
        "This works for a delivery in any state, and for a webhook that is off. What is waiting for its next attempt "
        "is tried now.",
        scope=FULL,
        answers=[
            answer(
                200,
                DeliveryItemSerializer,
                "The delivery as it is now.",
                example={**DELIVERY, "nextAttemptAt": FRESH["nextAttemptAt"]},
            )
        ],
        problems=[NOT_FOUND],
        parameters=[OF_WEBHOOK],
    ),
)
