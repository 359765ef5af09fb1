"""`/v1/alerts`: create, list, retrieve, change, delete."""

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from alerts.models import Alert
from alerts.schema import alerts_schema
from alerts.serializers import AlertChanges, AlertInput, AlertSerializer
from alerts.services import create_alert, delete_alert, update_alert
from alerts.values import read_values
from core.api.fields import DeletedSerializer
from core.api.pagination import PagePagination
from core.workspaces.api.viewsets import WorkspaceViewSet


@alerts_schema
class AlertViewSet(WorkspaceViewSet[Alert]):
    queryset = Alert.objects.all()
    serializer_class = AlertSerializer

    def get_queryset(self) -> QuerySet[Alert]:
        return super().get_queryset().select_related("workspace")

    def list(self, request: Request) -> Response:
        pages = PagePagination()
        return pages.get_paginated_response(_shown(pages.paginate_queryset(self.get_queryset(), request)))

    def retrieve(self, request: Request, pk: str) -> Response:
        return Response(_shown([self.get_object()])[0])

    def create(self, request: Request) -> Response:
        alert = create_alert(self.workspace, **self.valid(AlertInput))
        return Response(_shown([alert])[0], status=status.HTTP_201_CREATED)

    def partial_update(self, request: Request, pk: str) -> Response:
        return Response(_shown([update_alert(self.get_object(), changes=self.valid(AlertChanges))])[0])

    def destroy(self, request: Request, pk: str) -> Response:
        alert = self.get_object()
        delete_alert(alert)
        return Response(DeletedSerializer({"id": alert.id}).data)


def _shown(alerts: Sequence[Alert]) -> Sequence[Any]:
    """Return alerts with their present values as responses show them."""
    context = {"values": read_values(alerts)}
    return [AlertSerializer(alert, context=context).data for alert in alerts]
