"""`/v1/webhooks`: create, list, retrieve, update, delete, test and rotate the secret; and the log of deliveries."""

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.generics import get_object_or_404
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.errors import InvalidFields, NotFound
from core.api.fields import DeletedSerializer
from core.api.schema import ID, Operation, example, response
from core.workspaces.api.schema import keyed_view
from core.workspaces.api.viewsets import WorkspaceViewSet
from core.workspaces.errors import PlanLimitReached
from events.kinds import TYPE_PREFIX
from streams.errors import StreamNotFound
from webhooks.filters import DeliveryFilters
from webhooks.models import Webhook, WebhookDelivery
from webhooks.serializers import (
    DeliveryItemSerializer,
    DeliverySerializer,
    WebhookChanges,
    WebhookInput,
    WebhookSerializer,
    WebhookWithSecretSerializer,
)
from webhooks.services import (
    create_webhook,
    delete_webhook,
    replay_delivery,
    rotate_secret,
    send_test,
    update_webhook,
)

WEBHOOK = example(
    WebhookSerializer,
    id="wh_0Uf7p4Lm9XsRdT2bVhYkNc",
    url="https://example.com/hooks/email",
    events=["delivered", "bounced"],
    disabledReason=None,
    createdAt="2026-11-20T08:12:44.102Z",
)
SECRET = "whsec_239wFAPcARd6kiim2nsbIiBl1aErCwb5gYvR7vg2ZTc="  # noqa: S105 - the documentation's example
NEW_WEBHOOK = {**WEBHOOK, "secret": SECRET, "verificationKey": None}
DELIVERY = example(
    DeliveryItemSerializer,
    id="whd_0Uf8c7Qw2ErTyUiOpAsDfG",
    webhookId=WEBHOOK["id"],
    eventId="evt_0Uf8c7QhJkLzXcVbNmQwEr",
    event="bounced",
    status="pending",
    attemptCount=1,
    statusCode=503,
    error="status",
    nextAttemptAt="2026-11-21T06:20:05.730Z",
    createdAt="2026-11-21T06:20:00.412Z",
)
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


@keyed_view(
    list=Operation(
        "listWebhooks",
        "List webhooks",
        "Returns the workspace's webhooks, newest first. `disabledReason` explains why a webhook was disabled "
        "automatically.",
        response(WebhookSerializer, "A page of webhooks.", WEBHOOK),
    ),
    retrieve=Operation(
        "getWebhook",
        "Get a webhook",
        "Returns one webhook, without its secret.",
        response(WebhookSerializer, "The webhook.", WEBHOOK),
    ),
)
class WebhookViewSet(ListModelMixin, RetrieveModelMixin, WorkspaceViewSet[Webhook]):
    queryset = Webhook.objects.all()
    serializer_class = WebhookSerializer

    @Operation(
        "createWebhook",
        "Create a webhook",
        "Starts posting events of the given types to the URL, which must be https, on port 443, at a public address. "
        "The response contains the `secret` for [verifying signatures](/docs/webhooks#verify-signatures); it cannot be "
        "read again. A "
        f"workspace can have up to 20 webhooks. Event types may also be given as `{TYPE_PREFIX}bounced`. A URL that "
        "is not allowed fails with `forbidden_target` on the field `url`. `headers` are sent with each request, such "
        "as `Authorization`; their values cannot be read again.",
        response(WebhookWithSecretSerializer, "The webhook was created.", NEW_WEBHOOK, status=201),
        problems=[PlanLimitReached, StreamNotFound],
        body=WebhookInput,
        bodies={"A webhook": {"url": WEBHOOK["url"], "events": ["delivered", "bounced"]}},
    )
    def create(self, request: Request) -> Response:
        webhook, secret = create_webhook(self.workspace, **self.valid(WebhookInput))
        body = WebhookWithSecretSerializer(webhook, context={"secret": secret}).data
        return Response(body, status=status.HTTP_201_CREATED)

    @Operation(
        "updateWebhook",
        "Change a webhook",
        "Changes the given fields. Setting `active` to false stops posting and marks pending deliveries as "
        "`discarded`; they can be replayed. Setting `active` to true clears `disabledReason`. `headers` replaces all "
        "of them, and keeps the value of one that is given as it is shown; a URL on another host requires the values.",
        response(WebhookSerializer, "The updated webhook.", WEBHOOK),
        problems=[StreamNotFound],
        body=WebhookChanges,
        bodies={"Enable it again": {"active": True}, "Another URL": {"url": "https://example.com/hooks/new"}},
    )
    def partial_update(self, request: Request, pk: str) -> Response:
        webhook = self.get_object()
        changed = update_webhook(webhook, changes=self.valid(WebhookChanges))
        return Response(WebhookSerializer(changed).data)

    @Operation(
        "deleteWebhook",
        "Delete a webhook",
        "Deletes the webhook with its deliveries and stops posting.",
        response(DeletedSerializer, "The webhook was deleted.", example(DeletedSerializer, id=WEBHOOK["id"])),
    )
    def destroy(self, request: Request, pk: str) -> Response:
        webhook = self.get_object()
        delete_webhook(webhook)
        return Response(DeletedSerializer(webhook).data)

    @Operation(
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
    )
    @action(detail=True, methods=["post"])
    def test(self, request: Request, pk: str) -> Response:
        delivery = send_test(self.get_object())
        return Response(DeliveryItemSerializer(delivery).data, status=status.HTTP_202_ACCEPTED)

    @Operation(
        "rotateWebhookSecret",
        "Rotate the secret",
        "Creates a new secret and returns it once. For 24 hours both secrets sign: the new one in "
        "`x-service-signature`, the old one in `x-service-signature-previous`, and both in `webhook-signature`.",
        response(WebhookWithSecretSerializer, "The new secret.", NEW_WEBHOOK),
    )
    @action(detail=True, methods=["post"], url_path="rotate-secret")
    def rotate_secret(self, request: Request, pk: str) -> Response:
        webhook = self.get_object()
        return Response(WebhookWithSecretSerializer(webhook, context={"secret": rotate_secret(webhook)}).data)


@keyed_view(
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
)
class DeliveryViewSet(ListModelMixin, RetrieveModelMixin, WorkspaceViewSet[WebhookDelivery]):
    queryset = WebhookDelivery.objects.select_related("pending")
    filterset_class = DeliveryFilters

    def get_queryset(self) -> QuerySet[WebhookDelivery]:
        webhook = get_object_or_404(self.workspace.webhooks, pk=self.kwargs["webhook_id"])
        deliveries = super().get_queryset().filter(webhook=webhook)
        if self.action != "list":
            return deliveries.select_related("event")
        # Lists skip the attempts: each has up to 4 KiB of response.
        return deliveries.defer("attempts")

    def get_serializer_class(self) -> type[DeliveryItemSerializer]:
        return DeliveryItemSerializer if self.action == "list" else DeliverySerializer

    @Operation(
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
    )
    @action(detail=True, methods=["post"])
    def replay(self, request: Request, webhook_id: str, pk: str) -> Response:
        return Response(DeliveryItemSerializer(replay_delivery(self.get_object())).data)
