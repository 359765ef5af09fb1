"""Checks of alerts: compare each value with its threshold, and notify once when an alert begins and when it ends.

Concurrent checks are safe: a conditional update decides which one notifies. See docs/decisions/0246.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

from django.db import DatabaseError, transaction
from django.db.models import Q
from django.db.models.functions import Now

from alerts.models import Alert
from alerts.recent import MINIMUM_RECIPIENTS
from alerts.sends import learn_patterns
from alerts.services import describe_alert
from alerts.values import MINIMUM_TOTAL, RATES, read_values
from alerts.waiting import WAITING_MINUTES
from alerts.watched_value import WatchedValue, number_text
from analytics.reputation.rates import PERIOD_DAYS
from core.lib.coded_texts import CodedText
from events.kinds import EventKind
from events.recording import NewEvent, record_events

# Alerts whose values one statement reads.
BATCH = 500
# An alert that has ended begins again at the earliest after this time since it began last: at most two notifications
# a day.
MINIMUM_INTERVAL = timedelta(days=1)

log = logging.getLogger("postrider.alerts")

SENTENCES = {
    Alert.WatchedMetric.BOUNCE_RATE: "alerts.bounce_rate",
    Alert.WatchedMetric.COMPLAINT_RATE: "alerts.complaint_rate",
    Alert.WatchedMetric.FAILURE_RATE: "alerts.failure_rate",
    Alert.WatchedMetric.QUOTA_USED: "alerts.quota_used",
    Alert.WatchedMetric.LATENCY_P95: "alerts.latency_p95",
    Alert.WatchedMetric.DEFERRED_SHARE: "alerts.deferred_share",
    Alert.WatchedMetric.WAITING: "alerts.waiting",
    Alert.WatchedMetric.SILENT: "alerts.silent",
}
# Why there is no value; `waiting` always has one.
NO_VALUES = {
    Alert.WatchedMetric.QUOTA_USED: "alerts.no_quota",
    Alert.WatchedMetric.LATENCY_P95: "alerts.too_few_recipients",
    Alert.WatchedMetric.DEFERRED_SHARE: "alerts.too_few_recipients",
    Alert.WatchedMetric.SILENT: "alerts.no_rhythm",
}

# Notifies the owners of an alert that began or ended, with a summary of its value, in the caller's transaction.
Notify = Callable[..., Any]


def check_alerts(*, notify: Notify) -> None:
    """Check the alerts that are watched."""
    learn_patterns()
    for batch in _batches():
        values = read_values(batch)
        for alert in batch:
            _check(alert, values[alert.id], notify)


def _batches() -> Iterator[Sequence[Alert]]:
    alerts = Alert.objects.watched().select_related("workspace")
    batch = list(alerts.order_by("id")[:BATCH])
    while batch:
        yield batch
        batch = list(alerts.filter(id__gt=batch[-1].id).order_by("id")[:BATCH])


def _check(alert: Alert, value: WatchedValue | None, notify: Notify) -> None:
    is_triggered = alert.triggered_at is not None
    if is_triggered and (value is None or value.is_far_below(alert.limit)):
        _isolate(_end, alert, value, notify)
    elif not is_triggered and value is not None and value.reaches(alert.limit):
        _isolate(_begin, alert, value, notify)


def _isolate(change: Callable[..., None], alert: Alert, *arguments: Any) -> None:
    try:
        change(alert, *arguments)
    except DatabaseError:
        # A lock timeout: the next run checks this alert again, and the others continue.
        log.exception("an alert could not be checked", extra={"data": {"alert": alert.id}})


@transaction.atomic
def _begin(alert: Alert, value: WatchedValue, notify: Notify) -> None:
    is_due = Q(last_triggered_at=None) | Q(last_triggered_at__lte=Now() - MINIMUM_INTERVAL)
    # Skips an alert that another check began, or whose threshold was changed in the meantime.
    unchanged = Alert.objects.filter(is_due, id=alert.id, threshold=alert.threshold, triggered_at=None)
    if unchanged.update(triggered_at=Now(), last_triggered_at=Now()):
        _announce(alert, EventKind.ALERT_TRIGGERED, value, notify)


@transaction.atomic
def _end(alert: Alert, value: WatchedValue | None, notify: Notify) -> None:
    unchanged = Alert.objects.filter(id=alert.id, threshold=alert.threshold, triggered_at=alert.triggered_at)
    if unchanged.update(triggered_at=None):
        _announce(alert, EventKind.ALERT_RESOLVED, value, notify)


def _announce(alert: Alert, kind: EventKind, value: WatchedValue | None, notify: Notify) -> None:
    details = {
        "alertId": alert.id,
        "metric": alert.metric,
        "threshold": alert.threshold,
        "value": value.number if value else None,
        **({"stream": alert.stream} if alert.stream else {}),
    }
    record_events([NewEvent(kind, workspace_id=alert.workspace_id, details=details)])
    if alert.email_owners:
        notify(alert, kind=kind, summary=_summary(alert, value), name=describe_alert(alert))


def _summary(alert: Alert, value: WatchedValue | None) -> CodedText:
    """Return a sentence about the value, or about why there is none."""
    metric = Alert.WatchedMetric(alert.metric)
    facts = {"days": PERIOD_DAYS, "minutes": WAITING_MINUTES}
    if value is None:
        minimum = MINIMUM_TOTAL if metric in RATES else MINIMUM_RECIPIENTS
        return CodedText(NO_VALUES.get(metric, "alerts.too_few"), minimum=minimum, **facts)
    number = number_text(value.number)
    numbers = {"part": f"{value.part:,}", "total": f"{value.total:,}", "number": number, "percent": number}
    return CodedText(SENTENCES[metric], **numbers, **facts)
