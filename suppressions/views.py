"""`/v1/suppressions`: list, create one or many, retrieve, delete."""

from typing import Any

from drf_spectacular.utils import PolymorphicProxySerializer
from rest_framework import status
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from core.api.pagination import PagePagination
from core.api.schema import Operation, example, response
from core.workspaces.api.schema import keyed_view
from core.workspaces.api.viewsets import WorkspaceViewSet
from streams.errors import StreamNotFound
from suppressions.filters import SuppressionFilters
from suppressions.models import Suppression
from suppressions.serializers import (
    MAX_ADDRESSES,
    SuppressionInput,
    SuppressionListSerializer,
    SuppressionSerializer,
    UnblockedSerializer,
)
from suppressions.services import delete_suppression, suppress_manually


class SuppressionPagination(PagePagination):
    default_limit = 50


BOUNCED = example(SuppressionSerializer, id="sup_0Uf7n3Kp8WqYzR5vTbLcMd", email="ada@example.com", reason="bounce")
MANUAL = {**BOUNCED, "id": "sup_0Uf8a1Gh6JkQwE4rTyUiOp", "email": "grace@example.com", "reason": "manual"}
ADDED = PolymorphicProxySerializer(
    "Suppressed", [SuppressionSerializer, SuppressionListSerializer], resource_type_field_name=None
)
ADDED_EXAMPLES = {"One": MANUAL, "Many": {"data": [MANUAL, BOUNCED]}}


@keyed_view(
    list=Operation(
        "listSuppressions",
        "List suppressions",
        "Returns the addresses that this workspace never sends to, newest first.",
        response(SuppressionSerializer, "A page of suppressions.", BOUNCED),
    ),
    retrieve=Operation(
        "getSuppression",
        "Get a suppression",
        "Returns one suppression.",
        response(SuppressionSerializer, "The suppression.", BOUNCED),
    ),
)
class SuppressionViewSet(ListModelMixin, RetrieveModelMixin, WorkspaceViewSet[Suppression]):
    queryset = Suppression.objects.all()
    serializer_class = SuppressionSerializer
    pagination_class = SuppressionPagination
    filterset_class = SuppressionFilters

    @Operation(
        "createSuppression",
        "Suppress addresses",
        f"Suppresses one address (`email`) or up to {MAX_ADDRESSES:,} (`emails`) with the reason `manual`. An address "
        "that is already suppressed keeps its suppression and reason; this is not an error. Case is ignored. With "
        "`emails` the response is `{data: […]}`, in the order of the request. With `stream`, only this stream is "
        "blocked.",
        [
            response(ADDED, "At least one address is newly suppressed.", examples=ADDED_EXAMPLES, status=201),
            response(ADDED, "All addresses were already suppressed.", examples=ADDED_EXAMPLES),
        ],
        problems=[StreamNotFound],
        body=SuppressionInput,
        bodies={"One": {"email": "grace@example.com"}, "Many": {"emails": ["grace@example.com", "ada@example.com"]}},
    )
    def create(self, request: Request) -> Response:
        suppression_request = self.valid(SuppressionInput)
        results = suppress_manually(
            self.workspace, addresses=suppression_request.addresses, stream=suppression_request.stream
        )
        rows = [suppression for suppression, _ in results]
        is_new = any(is_new for _, is_new in results)
        answer: BaseSerializer[Any] = (
            SuppressionListSerializer({"data": rows}) if suppression_request.is_list else SuppressionSerializer(rows[0])
        )
        return Response(answer.data, status=status.HTTP_201_CREATED if is_new else status.HTTP_200_OK)

    @Operation(
        "deleteSuppression",
        "Delete a suppression",
        "Removes the address from the list; later emails to it are sent as usual.",
        response(
            UnblockedSerializer,
            "The suppression was deleted.",
            {"id": BOUNCED["id"], "email": BOUNCED["email"], "deleted": True},
        ),
    )
    def destroy(self, request: Request, pk: str) -> Response:
        suppression = self.get_object()
        delete_suppression(suppression)
        return Response(UnblockedSerializer(suppression).data)
