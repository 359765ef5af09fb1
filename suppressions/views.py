"""`/v1/suppressions`: list, create one or many, retrieve, delete."""

from typing import Any

from rest_framework import status
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from core.api.pagination import PagePagination
from core.workspaces.api.viewsets import WorkspaceViewSet
from suppressions.filters import SuppressionFilters
from suppressions.models import Suppression
from suppressions.schema import suppressions_schema
from suppressions.serializers import (
    SuppressionInput,
    SuppressionListSerializer,
    SuppressionSerializer,
    UnblockedSerializer,
)
from suppressions.services import delete_suppression, suppress_manually


class SuppressionPagination(PagePagination):
    default_limit = 50


@suppressions_schema
class SuppressionViewSet(ListModelMixin, RetrieveModelMixin, WorkspaceViewSet[Suppression]):
    queryset = Suppression.objects.all()
    serializer_class = SuppressionSerializer
    pagination_class = SuppressionPagination
    filterset_class = SuppressionFilters

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

    def destroy(self, request: Request, pk: str) -> Response:
        suppression = self.get_object()
        delete_suppression(suppression)
        return Response(UnblockedSerializer(suppression).data)
