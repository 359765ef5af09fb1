"""`/v1/webhooks`: create, list, retrieve, update, delete, test and rotate the secret; and the log of deliveries."""

from django.db.models import QuerySet
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.generics import get_object_or_404
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.fields import DeletedSerializer
from core.workspaces.api.viewsets import WorkspaceViewSet
from webhooks.filters import DeliveryFilters
from webhooks.models import Webhook, WebhookDelivery
from webhooks.schema import deliveries_schema, webhooks_schema
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


@webhooks_schema
class WebhookViewSet(ListModelMixin, RetrieveModelMixin, WorkspaceViewSet[Webhook]):
    queryset = Webhook.objects.all()
    serializer_class = WebhookSerializer

    def create(self, request: Request) -> Response:
        webhook, secret = create_webhook(self.workspace, **self.valid(WebhookInput))
        body = WebhookWithSecretSerializer(webhook, context={"secret": secret}).data
        return Response(body, status=status.HTTP_201_CREATED)

    def partial_update(self, request: Request, pk: str) -> Response:
        webhook = self.get_object()
        changed = update_webhook(webhook, changes=self.valid(WebhookChanges))
        return Response(WebhookSerializer(changed).data)

    def destroy(self, request: Request, pk: str) -> Response:
        webhook = self.get_object()
        delete_webhook(webhook)
        return Response(DeletedSerializer(webhook).data)

    @action(detail=True, methods=["post"])
    def test(self, request: Request, pk: str) -> Response:
        delivery = send_test(self.get_object())
        return Response(DeliveryItemSerializer(delivery).data, status=status.HTTP_202_ACCEPTED)

    @action(detail=True, methods=["post"], url_path="rotate-secret")
    def rotate_secret(self, request: Request, pk: str) -> Response:
        webhook = self.get_object()
        return Response(WebhookWithSecretSerializer(webhook, context={"secret": rotate_secret(webhook)}).data)


@deliveries_schema
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

    @action(detail=True, methods=["post"])
    def replay(self, request: Request, webhook_id: str, pk: str) -> Response:
        return Response(DeliveryItemSerializer(replay_delivery(self.get_object())).data)
