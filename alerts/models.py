"""Alerts of workspaces: a watched value, its threshold, and whether it is reached. See docs/decisions/0246."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Self

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from alerts.silence import WEEK, WEEKS, Rhythm, learn_rhythm
from core.lib.model_fields import IdField
from core.lib.translation import translated_choices
from core.workspaces.models import Workspace


def alert_metrics() -> list[tuple[str, Any]]:
    """Return the choices of Alert.metric: a function, so that a new one needs no migration."""
    return translated_choices(Alert.WatchedMetric)


class AlertQuerySet(models.QuerySet["Alert"]):
    def watched(self) -> Self:
        """Return the alerts of workspaces that are not deleted, and whose owner has confirmed an address."""
        return self.filter(workspace__deletes_at=None, workspace__is_proven=True)


class Alert(models.Model):
    """An alert.

    triggered_at: set and cleared by alerts.checks.
    """

    class WatchedMetric(models.TextChoices):
        BOUNCE_RATE = "bounce_rate", "Bounce rate"
        COMPLAINT_RATE = "complaint_rate", "Complaint rate"
        FAILURE_RATE = "failure_rate", "Failure rate"
        QUOTA_USED = "quota_used", "Quota used"
        LATENCY_P95 = "latency_p95", "95th percentile of the time to send"
        DEFERRED_SHARE = "deferred_share", "Deferred recipients"
        WAITING = "waiting", "Waiting emails"
        SILENT = "silent", "Silence"

    id = IdField("alr_", primary_key=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="alerts", db_index=False)
    metric = models.CharField(
        max_length=32,
        choices=alert_metrics,
        help_text="The watched value: `bounce_rate` and `complaint_rate` of recipients, `failure_rate` of emails, each "
        "over seven days; `quota_used` of the month; `latency_p95`, the seconds within which 95 % of the recipients "
        "had an outcome, and `deferred_share` of recipients, both since the previous hour began; `waiting`, emails "
        "older than ten minutes; or `silent`, a stream that has not sent for several of its usual gaps.",
    )
    stream = models.CharField(
        max_length=40,
        blank=True,
        default="",
        help_text="The id of the only stream whose emails count; absent for all emails.",
    )
    threshold = models.FloatField(
        help_text="The value at which the alert begins: in percent, in seconds (`latency_p95`), in emails (`waiting`), "
        "or in usual gaps (`silent`). It ends below nine tenths of it."
    )
    email_owners = models.BooleanField(
        default=True,
        help_text="Whether the owners of the workspace get an email when the alert begins and when it ends.",
    )
    triggered_at = models.DateTimeField(
        null=True, editable=False, help_text="The time when the alert began; null if it has not, or has ended."
    )
    last_triggered_at = models.DateTimeField(
        null=True, editable=False, help_text="The time when the alert began last; null if it never did."
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = AlertQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "metric", "stream", "threshold"], name="one_alert_a_threshold")
        ]
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        stream = f" ({self.stream})" if self.stream else ""
        return f"{self.get_metric_display()}{stream} ≥ {self.threshold:g}{UNITS[self.metric].suffix}"

    @property
    def limit(self) -> Decimal:
        """The threshold as it was written: 0.07 % of 10,000 emails are 7, not a little more."""
        return Decimal(str(self.threshold))


@dataclass(frozen=True)
class Unit:
    """The unit of a metric, and the largest threshold in it."""

    suffix: str
    most: float


PERCENT = Unit(" %", 100)
UNITS: Mapping[str, Unit] = {
    Alert.WatchedMetric.BOUNCE_RATE: PERCENT,
    Alert.WatchedMetric.COMPLAINT_RATE: PERCENT,
    Alert.WatchedMetric.FAILURE_RATE: PERCENT,
    Alert.WatchedMetric.QUOTA_USED: PERCENT,
    # Two days, as the histograms.
    Alert.WatchedMetric.LATENCY_P95: Unit(" s", 172_800),
    Alert.WatchedMetric.DEFERRED_SHARE: PERCENT,
    # Half of the entries that are counted.
    Alert.WatchedMetric.WAITING: Unit("", 1_000),
    Alert.WatchedMetric.SILENT: Unit(" usual gaps", 100),
}
# Emails in WEEKS: fewer than twenty a week show no rhythm.
MINIMUM_EMAILS = 20 * WEEKS


class SendPattern(models.Model):
    """When a stream with a `silent` alert sends, and the rhythm that was learned from it (docs/decisions/0385).

    sends: the first email of each slot of WEEKS before the last one, in seconds since 1970.
    emails: the number of emails of each send.
    read_until: the time until which emails are in sends.
    rates, usual_sends, usual_seconds: those of alerts.silence.Rhythm; rates is empty without one.
    """

    alert = models.OneToOneField(Alert, primary_key=True, on_delete=models.CASCADE, related_name="pattern")
    sends = ArrayField(models.BigIntegerField(), default=list, db_default=[])
    emails = ArrayField(models.SmallIntegerField(), default=list, db_default=[])
    read_until = models.BigIntegerField(default=0, db_default=0)
    last_send = models.BigIntegerField(default=0, db_default=0)
    rates = ArrayField(models.FloatField(), default=list, db_default=[])
    usual_sends = models.FloatField(default=0, db_default=0)
    usual_seconds = models.FloatField(default=0, db_default=0)
    learned_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{len(self.sends)} sends"

    @property
    def rhythm(self) -> Rhythm | None:
        return Rhythm(self.rates, self.usual_sends, self.usual_seconds) if self.rates else None

    def learn(self, found: Sequence[tuple[int, int]], read_until: int) -> None:
        """Add sends, forget those that are too old, and learn the rhythm anew."""
        sends = [*zip(self.sends, self.emails, strict=True), *found]
        self.last_send = sends[-1][0] if sends else 0
        kept = [(time, emails) for time, emails in sends if time >= self.last_send - WEEKS * WEEK]
        self.sends, self.emails = [time for time, _ in kept], [emails for _, emails in kept]
        self.read_until = read_until
        has_enough = sum(self.emails) >= MINIMUM_EMAILS
        rhythm = learn_rhythm(self.sends, former=self.rhythm) if has_enough else None
        self.rates, self.usual_sends, self.usual_seconds = (
            (list(rhythm.rates), rhythm.usual_sends, rhythm.usual_seconds) if rhythm else ([], 0.0, 0.0)
        )


LEARNED_FIELDS = ("sends", "emails", "read_until", "last_send", "rates", "usual_sends", "usual_seconds")
