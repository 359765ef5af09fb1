"""`/v1/alerts` in the OpenAPI document."""

from typing import Any

from alerts.errors import AlertExists
from alerts.serializers import AlertChanges, AlertInput, AlertSerializer
from core.api.fields import DeletedSerializer
from core.api.schema import Operation, response
from core.workspaces.api.schema import keyed_view
from core.workspaces.errors import PlanLimitReached
from streams.errors import StreamNotFound

ALERT: dict[str, Any] = {
    "id": "alr_0Uf7p4Lm9XsRdT2bVhYkNc",
    "metric": "bounce_rate",
    "threshold": 4,
    "emailOwners": True,
    "value": 1.25,
    "triggeredAt": None,
    "lastTriggeredAt": None,
    "createdAt": "2026-11-20T08:12:44.102Z",
}

alerts_schema = keyed_view(
    list=Operation(
        "listAlerts",
        "List alerts",
        "Returns the alerts of the workspace with their present values, newest first.",
        response(AlertSerializer, "A page of alerts.", ALERT),
    ),
    create=Operation(
        "createAlert",
        "Create an alert",
        "Watches a rate or the quota: when the value reaches the threshold, the owners get an email, and webhooks that "
        "subscribe to it get `alert.triggered`; when it is below nine tenths of the threshold, `alert.resolved`. "
        "Alerts are checked every minute, and begin at most once in 24 hours. A workspace has at most 20.",
        response(AlertSerializer, "The alert was created.", ALERT, status=201),
        problems=[AlertExists, StreamNotFound, PlanLimitReached],
        body=AlertInput,
        bodies={
            "Bounces of a stream": {"metric": "bounce_rate", "threshold": 4, "stream": "main"},
            "Quota": {"metric": "quota_used", "threshold": 80},
        },
    ),
    retrieve=Operation(
        "getAlert", "Get an alert", "Returns one alert.", response(AlertSerializer, "The alert.", ALERT)
    ),
    partial_update=Operation(
        "updateAlert",
        "Change an alert",
        "Changes the given fields. The next check compares the value with the new threshold.",
        response(AlertSerializer, "The changed alert.", {**ALERT, "threshold": 5}),
        problems=[AlertExists],
        body=AlertChanges,
        bodies={"A threshold": {"threshold": 5}},
    ),
    destroy=Operation(
        "deleteAlert",
        "Delete an alert",
        "Deletes an alert. Nobody is notified.",
        response(DeletedSerializer, "The alert is deleted.", {"id": ALERT["id"], "deleted": True}),
    ),
)
