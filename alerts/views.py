"""`/v1/alerts`: create, list, retrieve, change, delete."""

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from alerts.errors import AlertExists
from alerts.models import Alert
from alerts.serializers import AlertChanges, AlertInput, AlertSerializer
from alerts.services import create_alert, delete_alert, update_alert
from alerts.values import read_values
from core.api.fields import DeletedSerializer
from core.api.pagination import PagePagination
from core.api.schema import Operation, example, response
from core.workspaces.api.schema import keyed_view
from core.workspaces.api.viewsets import WorkspaceViewSet
from core.workspaces.errors import PlanLimitReached
from streams.errors import StreamNotFound

ALERT = example(
    AlertSerializer,
    id="alr_0Uf7p4Lm9XsRdT2bVhYkNc",
    metric="bounce_rate",
    threshold=4,
    value=1.25,
    createdAt="2026-11-20T08:12:44.102Z",
)


@keyed_view()
class AlertViewSet(WorkspaceViewSet[Alert]):
    queryset = Alert.objects.all()
    serializer_class = AlertSerializer

    def get_queryset(self) -> QuerySet[Alert]:
        return super().get_queryset().select_related("workspace")

    @Operation(
        "listAlerts",
        "List alerts",
        "Returns the alerts of the workspace with their present values, newest first.",
        response(AlertSerializer, "A page of alerts.", ALERT),
    )
    def list(self, request: Request) -> Response:
        pages = PagePagination()
        return pages.get_paginated_response(_shown(pages.paginate_queryset(self.get_queryset(), request)))

    @Operation("getAlert", "Get an alert", "Returns one alert.", response(AlertSerializer, "The alert.", ALERT))
    def retrieve(self, request: Request, pk: str) -> Response:
        return Response(_shown([self.get_object()])[0])

    @Operation(
        "createAlert",
        "Create an alert",
        "Watches a value, such as a rate, the quota, the time to send or the silence of a stream: when it reaches the "
        "threshold, the owners get an email, and webhooks that subscribe to it get `alert.triggered`; when it is below "
        "nine tenths of the threshold, `alert.resolved`. "
        "Alerts are checked every minute, and begin at most once in 24 hours. A workspace has at most 20.",
        response(AlertSerializer, "The alert was created.", ALERT, status=201),
        problems=[AlertExists, StreamNotFound, PlanLimitReached],
        body=AlertInput,
        bodies={
            "Bounces of a stream": {"metric": "bounce_rate", "threshold": 4, "stream": "main"},
            "Quota": {"metric": "quota_used", "threshold": 80},
            "Silence of a stream": {"metric": "silent", "threshold": 2, "stream": "main"},
        },
    )
    def create(self, request: Request) -> Response:
        alert = create_alert(self.workspace, **self.valid(AlertInput))
        return Response(_shown([alert])[0], status=status.HTTP_201_CREATED)

    @Operation(
        "updateAlert",
        "Change an alert",
        "Changes the given fields. The next check compares the value with the new threshold.",
        response(AlertSerializer, "The changed alert.", {**ALERT, "threshold": 5}),
        problems=[AlertExists],
        body=AlertChanges,
        bodies={"A threshold": {"threshold": 5}},
    )
    def partial_update(self, request: Request, pk: str) -> Response:
        return Response(_shown([update_alert(self.get_object(), changes=self.valid(AlertChanges))])[0])

    @Operation(
        "deleteAlert",
        "Delete an alert",
        "Deletes an alert. Nobody is notified.",
        response(DeletedSerializer, "The alert is deleted.", example(DeletedSerializer, id=ALERT["id"])),
    )
    def destroy(self, request: Request, pk: str) -> Response:
        alert = self.get_object()
        delete_alert(alert)
        return Response(DeletedSerializer({"id": alert.id}).data)


def _shown(alerts: Sequence[Alert]) -> Sequence[Any]:
    """Return alerts with their present values as responses show them."""
    context = {"values": read_values(alerts)}
    return [AlertSerializer(alert, context=context).data for alert in alerts]
