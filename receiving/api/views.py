"""`/v1/inbound/emails`: received emails."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.errors import NotFound
from core.api.fields import DeletedSerializer
from core.api.schema import Operation, response
from core.api.transfers import FileResponse
from core.workspaces.api.authentication import key_of
from core.workspaces.api.schema import keyed_view
from core.workspaces.api.viewsets import WorkspaceViewSet
from core.workspaces.errors import PlanLimitReached
from receiving.api.downloads import attachment_response, raw_response
from receiving.api.examples import EMAIL, ID, ITEM, SIMULATED, SIMULATION, UNTIL
from receiving.api.filters import ReceivedFilters
from receiving.api.serializers import (
    ForwardedSerializer,
    ForwardInput,
    ReceivedDetailSerializer,
    RedeliveredSerializer,
    RedeliverInput,
    RereadSerializer,
    SimulationInput,
)
from receiving.arrival.simulation import simulate_email
from receiving.errors import (
    NotBlocked,
    NotForwarded,
    NotPublished,
    NotUnreadable,
    RecipientRefused,
    RereadTooSoon,
    TestKeyRequired,
)
from receiving.forwarding.forwards import forward_email
from receiving.models import ReceivedEmail
from receiving.rendering import ReceivedItemSerializer
from receiving.services import bypass_block, delete_email, redeliver_email
from receiving.unread.rereading import reread_email

# The message, with the escapes of JSON.
MAX_SIMULATION_BYTES = 16 * 1024 * 1024
ATTACHMENT = OpenApiParameter("attachment_id", str, OpenApiParameter.PATH, description="The id of the attachment.")
BYTES = {"type": "string", "format": "binary"}


@keyed_view(
    list=Operation(
        "listReceivedEmails",
        "List received emails",
        "Returns the emails that the workspace received, newest first, without text, HTML and headers.",
        response(ReceivedItemSerializer, "A page of received emails.", ITEM),
    ),
    retrieve=Operation(
        "getReceivedEmail",
        "Get a received email",
        "Returns one received email. Its URLs work for an hour.",
        response(ReceivedDetailSerializer, "The received email.", EMAIL),
    ),
)
class ReceivedViewSet(ListModelMixin, RetrieveModelMixin, WorkspaceViewSet[ReceivedEmail]):
    queryset = ReceivedEmail.objects.all()
    filterset_class = ReceivedFilters
    body_bytes: ClassVar = {"create": MAX_SIMULATION_BYTES}
    sending_actions = frozenset({"create", "list", "retrieve", "raw", "attachments"})

    def get_queryset(self) -> QuerySet[ReceivedEmail]:
        emails: Any = super().get_queryset()
        emails = emails.for_scope(key_of(self.request).scope, self.limits)
        emails = emails.select_related("message") if self.action == "retrieve" else emails.without_content()
        rows: QuerySet[ReceivedEmail] = emails.with_replies()
        return rows

    def get_serializer_class(self) -> type[ReceivedItemSerializer]:
        return ReceivedItemSerializer if self.action == "list" else ReceivedDetailSerializer

    @Operation(
        "simulateReceivedEmail",
        "Simulate a received email",
        "Stores a message as if a mail server had delivered it, for tests without an MX record. Requires a test key. "
        "The email is read like any other; its `test` is true, and it matches test emails only.",
        response(ReceivedDetailSerializer, "The message is stored.", SIMULATED, status=202),
        problems=[TestKeyRequired, RecipientRefused],
        body=SimulationInput,
        bodies={"A message": SIMULATION},
    )
    def create(self, request: Request) -> Response:
        email = simulate_email(self.workspace, limits=self.limits, **self.valid(SimulationInput))
        return Response(ReceivedDetailSerializer(email).data, status=status.HTTP_202_ACCEPTED)

    @Operation(
        "deleteReceivedEmail",
        "Delete a received email",
        "Deletes an email with its content and the deliveries of its event.",
        response(DeletedSerializer, "The email is deleted.", {"id": ID, "deleted": True}),
    )
    def destroy(self, request: Request, pk: str) -> Response:
        delete_email(self.get_object())
        return Response(DeletedSerializer({"id": pk}).data)

    @Operation(
        "getReceivedSource",
        "Get the source of a received email",
        "Returns the message as it was received, with the fields Received and Authentication-Results of this service "
        "in front.",
        response(BYTES, "The message.", SIMULATION["raw"], media_type="message/rfc822"),
    )
    @action(detail=True)
    def raw(self, request: Request, pk: str) -> FileResponse:
        return raw_response(request, self.get_object())

    @Operation(
        "getReceivedAttachment",
        "Get an attachment of a received email",
        "Returns the decoded bytes of an attachment.",
        response(BYTES, "The file.", "Hello", media_type="application/octet-stream"),
        parameters=[ATTACHMENT],
    )
    @action(detail=True, url_path="attachments/(?P<attachment_id>[^/]+)")
    def attachments(self, request: Request, pk: str, attachment_id: str) -> FileResponse:
        email = self.get_object()
        numbers = [entry["id"] for entry in email.message.attachments]
        if attachment_id not in numbers:
            raise NotFound
        return attachment_response(request, email, numbers.index(attachment_id))

    @Operation(
        "bypassBlock",
        "Release a blocked email",
        "Publishes an email that a rule of its route, or a block of its sender, has kept back. The request has no "
        "body.",
        response(ReceivedDetailSerializer, "The email is published.", EMAIL),
        problems=[NotBlocked],
    )
    @action(detail=True, methods=["post"])
    def bypass(self, request: Request, pk: str) -> Response:
        bypass_block(self.get_object())
        return self.retrieve(request, pk)

    @Operation(
        "forwardReceivedEmail",
        "Forward a received email",
        "Sends a new email with the received one attached to an address that has confirmed it. Automatic emails, "
        "delivery reports, spam and forwards are not forwarded.",
        response(
            ForwardedSerializer,
            "The new email is accepted.",
            {"id": ID, "to": "grace@example.org", "emailId": "0Uf7m2kQ8JsDp6YeGiUa1X"},
            status=202,
        ),
        problems=[NotForwarded, PlanLimitReached],
        body=ForwardInput,
        bodies={"To a colleague": {"to": "grace@example.org"}},
    )
    @action(detail=True, methods=["post"])
    def forward(self, request: Request, pk: str) -> Response:
        forwarded = forward_email(self.get_object(), to=self.valid(ForwardInput)["to"])
        body = ForwardedSerializer({"id": pk, "address": forwarded.address, "sent_email_id": forwarded.sent_email_id})
        return Response(body.data, status=status.HTTP_202_ACCEPTED)

    @Operation(
        "redeliverReceivedEmail",
        "Deliver a received email again",
        "Posts its event again with the same bytes: to the webhooks that got it, or to those of `webhookIds`.",
        response(RedeliveredSerializer, "The deliveries are made.", {"id": ID, "deliveries": 1}, status=202),
        problems=[NotPublished],
        body=RedeliverInput,
        body_may_be_empty=True,
        bodies={"To one webhook": {"webhookIds": ["wh_0Uf7kXT4vB6nM8qWeRtYuI"]}},
    )
    @action(detail=True, methods=["post"])
    def redeliver(self, request: Request, pk: str) -> Response:
        webhook_ids = self.valid(RedeliverInput, may_be_empty=True).get("webhookIds")
        deliveries = redeliver_email(self.get_object(), webhook_ids=webhook_ids)
        body = RedeliveredSerializer({"id": pk, "deliveries": deliveries}).data
        return Response(body, status=status.HTTP_202_ACCEPTED)

    @Operation(
        "rereadReceivedEmail",
        "Read an unreadable email again",
        "Queues the message of an email that could not be read to be read again. Until then, the email keeps its "
        "status. Once the message is read, the email is `processed` and a second `received` event with its content is "
        "posted; a blocked email is judged again by its route. If the message is unreadable again, nothing changes, "
        "and it can be reread an hour later. The request has no body; a message that is queued already stays so.",
        response(RereadSerializer, "The message is queued.", {"id": ID, "queuedAt": UNTIL}, status=202),
        problems=[NotUnreadable, RereadTooSoon],
    )
    @action(detail=True, methods=["post"])
    def reread(self, request: Request, pk: str) -> Response:
        queued_at = reread_email(self.get_object())
        return Response(RereadSerializer({"id": pk, "queuedAt": queued_at}).data, status=status.HTTP_202_ACCEPTED)
