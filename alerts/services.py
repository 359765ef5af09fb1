"""Alert services: create, change and delete. See docs/decisions/0246."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from alerts.errors import AlertExists
from alerts.models import UNITS, Alert
from alerts.watched_value import number_text
from core.api.errors import InvalidFields, NotFound
from core.lib.coded_texts import CodedText
from core.workspaces.audit import AuditAction, record_action
from core.workspaces.errors import PlanLimitReached
from core.workspaces.models import Workspace
from streams.services import existing_stream

MAX_ALERTS = 20
TOO_LARGE = "max_value"
NAMES = {
    Alert.WatchedMetric.BOUNCE_RATE: "alerts.bounce_rate_at",
    Alert.WatchedMetric.COMPLAINT_RATE: "alerts.complaint_rate_at",
    Alert.WatchedMetric.FAILURE_RATE: "alerts.failure_rate_at",
    Alert.WatchedMetric.QUOTA_USED: "alerts.quota_used_at",
    Alert.WatchedMetric.LATENCY_P95: "alerts.latency_p95_at",
    Alert.WatchedMetric.DEFERRED_SHARE: "alerts.deferred_share_at",
    Alert.WatchedMetric.WAITING: "alerts.waiting_at",
    Alert.WatchedMetric.SILENT: "alerts.silent_at",
}


@transaction.atomic
def create_alert(
    workspace: Workspace, *, metric: str, threshold: float, stream: str = "", email_owners: bool = True
) -> Alert:
    """Create an alert. stream: empty for all emails.

    Raises InvalidFields, StreamNotFound, AlertExists, and PlanLimitReached at MAX_ALERTS.
    """
    _refuse_threshold(metric, threshold)
    if stream:
        existing_stream(workspace, stream)
    workspace.lock()
    alert = Alert(workspace=workspace, metric=metric, stream=stream, threshold=threshold, email_owners=email_owners)
    _refuse_duplicate(alert)
    if workspace.alerts.count() >= MAX_ALERTS:
        detail = CodedText("alerts.too_many", limit=MAX_ALERTS)
        raise PlanLimitReached(detail, resource="alerts", limit=MAX_ALERTS)
    alert.save(force_insert=True)
    record_action(workspace, AuditAction.ALERT_CREATED, about=describe_alert(alert))
    alert.refresh_from_db()
    return alert


@transaction.atomic
def update_alert(alert: Alert, *, changes: Mapping[str, Any]) -> Alert:
    """Change the threshold or the emails of an alert. The next check compares its value with the new threshold.

    Raises InvalidFields, NotFound, AlertExists.
    """
    _refuse_threshold(alert.metric, changes.get("threshold", alert.threshold))
    alert.workspace.lock()
    locked = Alert.objects.select_for_update(of=("self",)).select_related("workspace").filter(id=alert.id).first()
    if locked is None:
        raise NotFound
    for name, value in changes.items():
        setattr(locked, name, value)
    _refuse_duplicate(locked)
    locked.save(update_fields=list(changes))
    record_action(locked.workspace, AuditAction.ALERT_CHANGED, about=describe_alert(locked))
    return locked


@transaction.atomic
def delete_alert(alert: Alert) -> None:
    if Alert.objects.filter(id=alert.id).delete()[0]:
        record_action(alert.workspace, AuditAction.ALERT_DELETED, about=describe_alert(alert))


def describe_alert(alert: Alert) -> CodedText:
    """Return a name of the alert: its metric, threshold and stream."""
    name = CodedText(NAMES[Alert.WatchedMetric(alert.metric)], limit=number_text(alert.threshold))
    return CodedText("alerts.in_stream", stream=alert.stream, text=name) if alert.stream else name


def _refuse_duplicate(alert: Alert) -> None:
    """Raise AlertExists for another alert with the same metric, stream and threshold."""
    same = {name: getattr(alert, name) for name in ("workspace", "metric", "stream", "threshold")}
    other = Alert.objects.filter(**same).exclude(id=alert.id).first()
    if other is not None:
        raise AlertExists(CodedText("alerts.exists", name=describe_alert(alert)), alertId=other.id)


def _refuse_threshold(metric: str, threshold: float) -> None:
    """Raise InvalidFields for a threshold above the largest of the metric."""
    if error := threshold_error(metric, threshold):
        raise InvalidFields([{"field": "threshold", "code": TOO_LARGE, "detail": error}])


def threshold_error(metric: str, threshold: float) -> str:
    """Return why a threshold is too large for the metric; empty if it is not."""
    most = UNITS[metric].most
    return CodedText("alerts.threshold_too_large", most=f"{most:,g}") if threshold > most else ""
