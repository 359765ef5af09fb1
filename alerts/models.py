"""Alerts of workspaces: a watched value, its threshold, and whether it is reached. See docs/decisions/0246."""

from decimal import Decimal
from typing import Any

from django.db import models
from django.db.models.functions import Now

from core.lib.model_fields import IdField
from core.lib.translation import translated_choices
from core.workspaces.models import Workspace


def alert_metrics() -> list[tuple[str, Any]]:
    """Return the choices of Alert.metric: a function, so that a new one needs no migration."""
    return translated_choices(Alert.WatchedMetric)


class Alert(models.Model):
    """An alert.

    triggered_at: set and cleared by alerts.checks.
    """

    class WatchedMetric(models.TextChoices):
        BOUNCE_RATE = "bounce_rate", "Bounce rate"
        COMPLAINT_RATE = "complaint_rate", "Complaint rate"
        FAILURE_RATE = "failure_rate", "Failure rate"
        QUOTA_USED = "quota_used", "Quota used"

    id = IdField("alr_", primary_key=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="alerts", db_index=False)
    metric = models.CharField(
        max_length=32,
        choices=alert_metrics,
        help_text="The watched value: `bounce_rate` and `complaint_rate` of recipients, `failure_rate` of emails, each "
        "over seven days, or `quota_used` of the month.",
    )
    stream = models.CharField(
        max_length=40,
        blank=True,
        default="",
        help_text="The id of the only stream whose emails count; absent for all emails.",
    )
    threshold = models.FloatField(
        help_text="The percentage at which the alert begins. It ends below nine tenths of it."
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

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "metric", "stream", "threshold"], name="one_alert_a_threshold")
        ]
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return f"{self.get_metric_display()}{f' ({self.stream})' if self.stream else ''} ≥ {self.threshold:g} %"

    @property
    def limit(self) -> Decimal:
        """The threshold as it was written: 0.07 % of 10,000 emails are 7, not a little more."""
        return Decimal(str(self.threshold))
