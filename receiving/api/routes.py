"""`/v1/inbound`: what the workspace can receive, its routes, and blocked senders."""

from rest_framework import status
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.fields import DeletedSerializer
from core.api.schema import Operation, example, response
from core.workspaces.api.schema import keyed_view
from core.workspaces.api.viewsets import WorkspaceView, WorkspaceViewSet
from core.workspaces.errors import PlanLimitReached
from domains.receiving.services import mail_hosts
from receiving.api.filters import RouteFilters
from receiving.api.serializers import (
    BlockInput,
    BlockSerializer,
    InboundSerializer,
    RecipientInput,
    RouteChanges,
    RouteInput,
    RouteMatchSerializer,
    RouteSerializer,
    UnblockedSenderSerializer,
    max_message_bytes,
)
from receiving.arrival.routing import find_route
from receiving.arrival.shared_addresses import shared_address
from receiving.arrival.usage import read_usage
from receiving.models import InboundRoute, SenderBlock
from receiving.services import block_sender, create_route, delete_route, unblock_sender, update_route

ROUTE = example(RouteSerializer, id="rt_0Uf7kXT4vB6nM8qWeRtYuI", name="Support", domain="shared", match="*+support")
BLOCK = example(BlockSerializer, id="blk_0Uf7kXT4vB6nM8qWeRtYuI", sender="spam.example")
INBOUND = {
    "address": "kqzrwplmxtva@in.example.com",
    "mailHosts": ["mx.example.com"],
    "maxMessageBytes": 26_214_400,
    "storage": {"used": 61023, "limit": 100_000_000},
    "messages": {"used": 1, "limit": 10_000},
}


@keyed_view()
class InboundView(WorkspaceView):
    action = "settings"

    @Operation(
        "getInbound",
        "Get what can be received",
        "Returns the address that the workspace has without any DNS, the mail hosts for MX records, and the use of its "
        "storage.",
        response(InboundSerializer, "What the workspace can receive.", INBOUND),
    )
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


@keyed_view(
    list=Operation(
        "listRoutes",
        "List routes",
        "Returns the routes of the workspace in their order: of those that match a recipient, the first decides.",
        response(RouteSerializer, "A page of routes.", ROUTE),
    ),
    retrieve=Operation("getRoute", "Get a route", "Returns one route.", response(RouteSerializer, "The route.", ROUTE)),
)
class RouteViewSet(ListModelMixin, RetrieveModelMixin, WorkspaceViewSet[InboundRoute]):
    queryset = InboundRoute.objects.all()
    serializer_class = RouteSerializer
    filterset_class = RouteFilters
    reading_actions = frozenset({"match"})

    @Operation(
        "createRoute",
        "Create a route",
        "Creates the rule for the recipient addresses of a receiving domain that match a pattern. A recipient without "
        "a route is refused. A workspace has at most 100 routes.",
        response(RouteSerializer, "The route was created.", ROUTE, status=201),
        problems=[PlanLimitReached],
        body=RouteInput,
        bodies={"Support": {"name": "Support", "domain": "shared", "match": "*+support"}},
    )
    def create(self, request: Request) -> Response:
        route = create_route(self.workspace, values=self.valid(RouteInput))
        return Response(RouteSerializer(route).data, status=status.HTTP_201_CREATED)

    @Operation(
        "updateRoute",
        "Change a route",
        "Changes the given fields; messages that were accepted before are not affected.",
        response(RouteSerializer, "The changed route.", {**ROUTE, "active": False}),
        body=RouteChanges,
        bodies={"Switch off": {"active": False}},
    )
    def partial_update(self, request: Request, pk: str) -> Response:
        route = update_route(self.get_object(), changes=self.valid(RouteChanges))
        return Response(RouteSerializer(route).data)

    @Operation(
        "deleteRoute",
        "Delete a route",
        "Deletes a route. Its recipients are refused, unless another route matches.",
        response(DeletedSerializer, "The route is deleted.", example(DeletedSerializer, id=ROUTE["id"])),
    )
    def destroy(self, request: Request, pk: str) -> Response:
        delete_route(self.get_object())
        return Response(DeletedSerializer({"id": pk}).data)

    @Operation(
        "matchRoute",
        "Find the route of an address",
        "Returns the route that decides about a recipient, and the reply of the mail server to it.",
        response(RouteMatchSerializer, "The route and the reply.", {"route": ROUTE, "reply": "250 2.1.5 OK"}),
        body=RecipientInput,
        bodies={"An address": {"recipient": "support+4711@in.demo.example"}},
    )
    @action(detail=False, methods=["post"])
    def match(self, request: Request) -> Response:
        found = find_route(self.workspace, self.valid(RecipientInput)["recipient"])
        return Response(RouteMatchSerializer(found).data)


@keyed_view(
    list=Operation(
        "listBlocks",
        "List blocked senders",
        "Returns the senders from which the workspace receives nothing, newest first.",
        response(BlockSerializer, "A page of blocked senders.", BLOCK),
    )
)
class BlockViewSet(ListModelMixin, WorkspaceViewSet[SenderBlock]):
    queryset = SenderBlock.objects.all()
    serializer_class = BlockSerializer

    @Operation(
        "createBlock",
        "Block a sender",
        "Blocks an address, or all addresses of a domain: the mail server refuses it in MAIL FROM, and a message with "
        "it in From is `blocked`. A sender that is blocked already stays so. A workspace has at most 1,000.",
        [
            response(BlockSerializer, "The sender is blocked.", BLOCK, status=201),
            response(BlockSerializer, "The sender was blocked already.", BLOCK),
        ],
        problems=[PlanLimitReached],
        body=BlockInput,
        bodies={"A domain": {"sender": "spam.example"}, "An address": {"sender": "eve@example.com"}},
    )
    def create(self, request: Request) -> Response:
        block, is_new = block_sender(self.workspace, sender=self.valid(BlockInput)["sender"])
        return Response(BlockSerializer(block).data, status=status.HTTP_201_CREATED if is_new else status.HTTP_200_OK)

    @Operation(
        "deleteBlock",
        "Unblock a sender",
        "Removes a sender from the list.",
        response(
            UnblockedSenderSerializer,
            "The sender is no longer blocked.",
            {"id": BLOCK["id"], "sender": BLOCK["sender"], "deleted": True},
        ),
    )
    def destroy(self, request: Request, pk: str) -> Response:
        block = self.get_object()
        unblock_sender(block)
        return Response(UnblockedSenderSerializer(block).data)
