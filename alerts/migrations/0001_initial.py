"""Alerts of workspaces."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import alerts.models
import core.lib.model_fields


class Migration(migrations.Migration):
    initial = True
    dependencies = [("workspaces", "0019_own_limits")]

    operations = [
        migrations.CreateModel(
            name="Alert",
            fields=[
                ("id", core.lib.model_fields.IdField("alr_", editable=False, primary_key=True, serialize=False)),
                ("metric", models.CharField(choices=alerts.models.alert_metrics, max_length=32, help_text='The watched value: `bounce_rate` and `complaint_rate` of recipients, `failure_rate` of emails, each over seven days, or `quota_used` of the month.')),
                ("stream", models.CharField(blank=True, default="", max_length=40, help_text='The id of the only stream whose emails count; absent for all emails.')),
                ("threshold", models.FloatField(help_text='The percentage at which the alert begins. It ends below nine tenths of it.')),
                ("email_owners", models.BooleanField(default=True, help_text='Whether the owners of the workspace get an email when the alert begins and when it ends.')),
                ("triggered_at", models.DateTimeField(editable=False, null=True, help_text='The time when the alert began; null if it has not, or has ended.')),
                ("last_triggered_at", models.DateTimeField(editable=False, null=True, help_text='The time when the alert began last; null if it never did.')),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="alerts",
                        to="workspaces.workspace",
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at", "-id"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "metric", "stream", "threshold"), name="one_alert_a_threshold"
                    )
                ],
            },
        ),
    ]
