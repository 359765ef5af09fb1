"""`/v1/inbound`: routes, blocks, received emails, and what the workspace can receive."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.errors import NotFound
from core.api.fields import DeletedSerializer
from core.api.transfers import FileResponse
from core.workspaces.api.authentication import key_of
from core.workspaces.api.viewsets import WorkspaceView, WorkspaceViewSet
from domains.receiving.services import mail_hosts
from receiving.api.downloads import attachment_response, raw_response
from receiving.api.filters import ReceivedFilters, RouteFilters
from receiving.api.schema import blocks_schema, inbound_schema, received_schema, routes_schema
from receiving.api.serializers import (
    BlockInput,
    BlockSerializer,
    ForwardedSerializer,
    ForwardInput,
    InboundSerializer,
    ReceivedDetailSerializer,
    RecipientInput,
    RedeliveredSerializer,
    RedeliverInput,
    RereadSerializer,
    RouteChanges,
    RouteInput,
    RouteMatchSerializer,
    RouteSerializer,
    SimulationInput,
    UnblockedSenderSerializer,
    max_message_bytes,
)
from receiving.arrival.routing import find_route
from receiving.arrival.shared_addresses import shared_address
from receiving.arrival.simulation import simulate_email
from receiving.arrival.usage import read_usage
from receiving.forwarding.forwards import forward_email
from receiving.models import InboundRoute, ReceivedEmail, SenderBlock
from receiving.rendering import ReceivedItemSerializer
from receiving.services import (
    block_sender,
    bypass_block,
    create_route,
    delete_email,
    delete_route,
    redeliver_email,
    unblock_sender,
    update_route,
)
from receiving.unread.rereading import reread_email

# The message, with the escapes of JSON.
MAX_SIMULATION_BYTES = 16 * 1024 * 1024


@inbound_schema
class InboundView(WorkspaceView):
    action = "settings"

    def get(self, request: Request) -> Response:
        usage = read_usage(self.workspace)
        settings = {
            "address": shared_address(self.workspace),
            "mailHosts": mail_hosts(),
            "maxMessageBytes": max_message_bytes(),
            "storage": {"used": usage.stored_bytes, "limit": usage.storage_bytes},
            "messages": {"used": usage.messages, "limit": usage.daily_messages},
        }
        return Response(InboundSerializer(settings).data)


@routes_schema
class RouteViewSet(ListModelMixin, RetrieveModelMixin, WorkspaceViewSet[InboundRoute]):
    queryset = InboundRoute.objects.all()
    serializer_class = RouteSerializer
    filterset_class = RouteFilters
    reading_actions = frozenset({"match"})

    def create(self, request: Request) -> Response:
        route = create_route(self.workspace, values=self.valid(RouteInput))
        return Response(RouteSerializer(route).data, status=status.HTTP_201_CREATED)

    def partial_update(self, request: Request, pk: str) -> Response:
        route = update_route(self.get_object(), changes=self.valid(RouteChanges))
        return Response(RouteSerializer(route).data)

    def destroy(self, request: Request, pk: str) -> Response:
        delete_route(self.get_object())
        return Response(DeletedSerializer({"id": pk}).data)

    @action(detail=False, methods=["post"])
    def match(self, request: Request) -> Response:
        found = find_route(self.workspace, self.valid(RecipientInput)["recipient"])
        return Response(RouteMatchSerializer(found).data)


@blocks_schema
class BlockViewSet(ListModelMixin, WorkspaceViewSet[SenderBlock]):
    queryset = SenderBlock.objects.all()
    serializer_class = BlockSerializer

    def create(self, request: Request) -> Response:
        block, is_new = block_sender(self.workspace, sender=self.valid(BlockInput)["sender"])
        return Response(BlockSerializer(block).data, status=status.HTTP_201_CREATED if is_new else status.HTTP_200_OK)

    def destroy(self, request: Request, pk: str) -> Response:
        block = self.get_object()
        unblock_sender(block)
        return Response(UnblockedSenderSerializer(block).data)


@received_schema
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

    def create(self, request: Request) -> Response:
        email = simulate_email(self.workspace, limits=self.limits, **self.valid(SimulationInput))
        return Response(ReceivedDetailSerializer(email).data, status=status.HTTP_202_ACCEPTED)

    def destroy(self, request: Request, pk: str) -> Response:
        delete_email(self.get_object())
        return Response(DeletedSerializer({"id": pk}).data)

    @action(detail=True)
    def raw(self, request: Request, pk: str) -> FileResponse:
        return raw_response(request, self.get_object())

    @action(detail=True, url_path="attachments/(?P<attachment_id>[^/]+)")
    def attachments(self, request: Request, pk: str, attachment_id: str) -> FileResponse:
        email = self.get_object()
        numbers = [entry["id"] for entry in email.message.attachments]
        if attachment_id not in numbers:
            raise NotFound
        return attachment_response(request, email, numbers.index(attachment_id))

    @action(detail=True, methods=["post"])
    def bypass(self, request: Request, pk: str) -> Response:
        bypass_block(self.get_object())
        return self.retrieve(request, pk)

    @action(detail=True, methods=["post"])
    def forward(self, request: Request, pk: str) -> Response:
        forwarded = forward_email(self.get_object(), to=self.valid(ForwardInput)["to"])
        body = ForwardedSerializer({"id": pk, "address": forwarded.address, "sent_email_id": forwarded.sent_email_id})
        return Response(body.data, status=status.HTTP_202_ACCEPTED)

    @action(detail=True, methods=["post"])
    def redeliver(self, request: Request, pk: str) -> Response:
        webhook_ids = self.valid(RedeliverInput, may_be_empty=True).get("webhookIds")
        deliveries = redeliver_email(self.get_object(), webhook_ids=webhook_ids)
        body = RedeliveredSerializer({"id": pk, "deliveries": deliveries}).data
        return Response(body, status=status.HTTP_202_ACCEPTED)

    @action(detail=True, methods=["post"])
    def reread(self, request: Request, pk: str) -> Response:
        queued_at = reread_email(self.get_object())
        return Response(RereadSerializer({"id": pk, "queuedAt": queued_at}).data, status=status.HTTP_202_ACCEPTED)
