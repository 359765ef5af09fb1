"""`/v1/webhooks` in the OpenAPI document."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter

from core.api.errors import InvalidFields, NotFound
from core.api.fields import DeletedSerializer
from core.api.schema import ID, Operation, response
from core.workspaces.api.schema import keyed_view
from core.workspaces.errors import PlanLimitReached
from events.kinds import TYPE_PREFIX
from streams.errors import StreamNotFound
from webhooks.serializers import (
    DeliveryItemSerializer,
    DeliverySerializer,
    WebhookChanges,
    WebhookInput,
    WebhookSerializer,
    WebhookWithSecretSerializer,
)

WEBHOOK: dict[str, Any] = {
    "id": "wh_0Uf7p4Lm9XsRdT2bVhYkNc",
    "url": "https://example.com/hooks/email",
    "events": ["delivered", "bounced"],
    "format": "standard",
    "active": True,
    "disabledReason": None,
    "createdAt": "2026-11-20T08:12:44.102Z",
}
SECRET = "whsec_239wFAPcARd6kiim2nsbIiBl1aErCwb5gYvR7vg2ZTc="  # noqa: S105 - the documentation's example
NEW_WEBHOOK = {**WEBHOOK, "secret": SECRET, "verificationKey": None}
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
NEW_DELIVERY = {"attemptCount": 0, "statusCode": None, "error": None, "nextAttemptAt": "2026-11-21T06:31:12.009Z"}
WEBHOOK_ID = OpenApiParameter(
    "webhook_id", {"type": "string", "pattern": f"^wh_{ID}$"}, OpenApiParameter.PATH, description="The webhook."
)

webhooks_schema = keyed_view(
    list=Operation(
        "listWebhooks",
        "List webhooks",
        "Returns the workspace's webhooks, newest first. `disabledReason` explains why a webhook was disabled "
        "automatically.",
        response(WebhookSerializer, "A page of webhooks.", WEBHOOK),
    ),
    create=Operation(
        "createWebhook",
        "Create a webhook",
        "Starts posting events of the given types to the URL, which must be https, on port 443, at a public address. "
        "The response contains the `secret` for [verifying signatures](/docs/webhooks#verify-signatures); it cannot be "
        "read again. A "
        f"workspace can have up to 20 webhooks. Event types may also be given as `{TYPE_PREFIX}bounced`. A URL that "
        "is not allowed fails with `forbidden_target` on the field `url`. `headers` are sent with each request, such "
        "as `Authorization`; their values cannot be read again.",
        response(
            WebhookWithSecretSerializer,
            "The webhook was created.",
            NEW_WEBHOOK,
            status=201,
        ),
        problems=[PlanLimitReached, StreamNotFound],
        body=WebhookInput,
        bodies={"A webhook": {"url": WEBHOOK["url"], "events": ["delivered", "bounced"]}},
    ),
    retrieve=Operation(
        "getWebhook",
        "Get a webhook",
        "Returns one webhook, without its secret.",
        response(WebhookSerializer, "The webhook.", WEBHOOK),
    ),
    partial_update=Operation(
        "updateWebhook",
        "Change a webhook",
        "Changes the given fields. Setting `active` to false stops posting and marks pending deliveries as "
        "`discarded`; they can be replayed. Setting `active` to true clears `disabledReason`. `headers` replaces all "
        "of them, and keeps the value of one that is given as it is shown; a URL on another host requires the values.",
        response(WebhookSerializer, "The updated webhook.", WEBHOOK),
        problems=[StreamNotFound],
        body=WebhookChanges,
        bodies={"Enable it again": {"active": True}, "Another URL": {"url": "https://example.com/hooks/new"}},
    ),
    destroy=Operation(
        "deleteWebhook",
        "Delete a webhook",
        "Deletes the webhook with its deliveries and stops posting.",
        response(DeletedSerializer, "The webhook was deleted.", {"id": WEBHOOK["id"], "deleted": True}),
    ),
    test=Operation(
        "testWebhook",
        "Test a webhook",
        "Posts a sample event at once, of the first event type that the webhook subscribes to, even if the webhook is "
        "disabled. Its body has `test: true`; everything else, including signatures and retries, works as for a "
        "real event.",
        response(
            DeliveryItemSerializer,
            "The delivery of the sample. Retrieve it later to see its result.",
            {**DELIVERY, **NEW_DELIVERY, "test": True, "createdAt": NEW_DELIVERY["nextAttemptAt"]},
            status=202,
        ),
        problems=[InvalidFields],
    ),
    rotate_secret=Operation(
        "rotateWebhookSecret",
        "Rotate the secret",
        "Creates a new secret and returns it once. For 24 hours both secrets sign: the new one in "
        "`x-service-signature`, the old one in `x-service-signature-previous`, and both in `webhook-signature`.",
        response(WebhookWithSecretSerializer, "The new secret.", NEW_WEBHOOK),
    ),
)

deliveries_schema = keyed_view(
    list=Operation(
        "listDeliveries",
        "List deliveries",
        "Returns the deliveries of a webhook, including pending ones, newest first.",
        response(DeliveryItemSerializer, "A page of deliveries.", DELIVERY),
        problems=[NotFound],
        parameters=[WEBHOOK_ID],
    ),
    retrieve=Operation(
        "getDelivery",
        "Get a delivery",
        "Returns one delivery with its body (the same bytes for every attempt) and the last 20 attempts. `answer` is "
        "the first 4 KiB of the response; `error` is null for a success.",
        response(DeliverySerializer, "The delivery.", {**DELIVERY, "attempts": [ATTEMPT], "body": BODY}),
        parameters=[WEBHOOK_ID],
    ),
    replay=Operation(
        "replayDelivery",
        "Replay a delivery",
        "Posts the event again at once, with the same body and id and a new signature. This works for any "
        "delivery status and for a disabled webhook. A pending delivery is attempted now instead of later. Earlier "
        "attempts stay in the log.",
        response(
            DeliveryItemSerializer,
            "The updated delivery.",
            {**DELIVERY, "nextAttemptAt": NEW_DELIVERY["nextAttemptAt"]},
        ),
        parameters=[WEBHOOK_ID],
    ),
)
