"""SendGrid's API: batches of emails, and their cancellation and pause (scheduled sends)."""

from typing import Any

from django.db.models import QuerySet
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from core.workspaces.key_limits import KeyLimits
from emails.accept.batches import cancel_batch, create_batch, pause_batch, resume_batch
from emails.models import EmailBatch
from interfaces.compat.errors import invalid_field
from interfaces.compat.sendgrid import requests, resources
from interfaces.compat.sendgrid.views import SendGridViewSet

# https://www.twilio.com/docs/sendgrid/api-reference/cancel-scheduled-sends
CHANGES = {"pause": pause_batch, "cancel": cancel_batch}


class SendGridBatchViewSet(SendGridViewSet[EmailBatch]):
    queryset = EmailBatch.objects.all()
    sending_actions = frozenset({"create", "retrieve"})
    id_prefix = "bat_"

    def create(self, request: Request) -> Response:
        batch = create_batch(self.workspace, limits=self.limits)
        return Response({"batch_id": resources.batch_id(batch)}, status=status.HTTP_201_CREATED)

    def retrieve(self, request: Request, pk: str) -> Response:
        return Response({"batch_id": resources.batch_id(self.find(pk))})


class SendGridScheduledSendViewSet(SendGridViewSet[EmailBatch]):
    """Batches that are cancelled or paused."""

    queryset = EmailBatch.objects.all()
    sending_actions = frozenset({"list", "create", "retrieve", "partial_update", "destroy"})
    id_prefix = "bat_"

    def get_queryset(self) -> QuerySet[EmailBatch]:
        rows = super().get_queryset()
        return rows if self.action == "create" else rows.exclude(state=EmailBatch.State.OPEN)

    def list(self, request: Request) -> Response:
        rows: QuerySet[EmailBatch] = self.get_queryset()[requests.read_slice(request)]
        return Response([resources.scheduled_send_resource(batch) for batch in rows])

    def create(self, request: Request) -> Response:
        batch = self.find(requests.read_batch_id(self.body.get("batch_id")))
        _change(batch, self.body, self.limits)
        return Response(resources.scheduled_send_resource(batch), status=status.HTTP_201_CREATED)

    def retrieve(self, request: Request, pk: str) -> Response:
        return Response([resources.scheduled_send_resource(self.find(pk))])

    def partial_update(self, request: Request, pk: str) -> Response:
        _change(self.find(pk), self.body, self.limits)
        return Response(status=status.HTTP_204_NO_CONTENT)

    def destroy(self, request: Request, pk: str) -> Response:
        resume_batch(self.find(pk), limits=self.limits)
        return Response(status=status.HTTP_204_NO_CONTENT)


def _change(batch: EmailBatch, body: dict[str, Any], limits: KeyLimits) -> None:
    name = body.get("status")
    if not isinstance(name, str) or name not in CHANGES:
        raise invalid_field("status", "Use cancel or pause.")
    CHANGES[name](batch, limits=limits)
