"""`/v1/suppressions`: list, create one or many, retrieve, delete."""

from django.db.models import QuerySet
from rest_framework import status
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from api.pagination import PagePagination
from suppressions.models import Suppression, SuppressionQuerySet
from suppressions.schema import suppressions_schema
from suppressions.serializers import SuppressionInput, SuppressionQuery, SuppressionSerializer
from suppressions.services import delete_suppression, suppress_addresses
from workspaces.api.viewsets import WorkspaceViewSet


class SuppressionPagination(PagePagination):
    default_limit = 50


@suppressions_schema
class SuppressionViewSet(ListModelMixin, RetrieveModelMixin, WorkspaceViewSet[Suppression]):
    queryset = Suppression.objects.all()
    serializer_class = SuppressionSerializer
    pagination_class = SuppressionPagination

    def get_queryset(self) -> QuerySet[Suppression]:
        rows = super().get_queryset()
        assert isinstance(rows, SuppressionQuerySet)
        return rows.matching(**self.valid_query(SuppressionQuery)) if self.action == "list" else rows

    def create(self, request: Request) -> Response:
        suppression_request = self.valid(SuppressionInput)
        results = suppress_addresses(
            self.workspace, addresses=suppression_request.addresses, reason=Suppression.Reason.MANUAL
        )
        rows = SuppressionSerializer([suppression for suppression, _ in results], many=True).data
        is_new = any(is_new for _, is_new in results)
        return Response(
            {"data": rows} if suppression_request.is_list else rows[0],
            status=status.HTTP_201_CREATED if is_new else status.HTTP_200_OK,
        )

    def destroy(self, request: Request, pk: str) -> Response:
        suppression = self.get_object()
        delete_suppression(suppression)
        return Response({"id": suppression.id, "email": suppression.email, "deleted": True})
