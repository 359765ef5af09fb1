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
                ("metric", models.CharField(choices=alerts.models.alert_metrics, max_length=32)),
                ("stream", models.CharField(blank=True, default="", max_length=40)),
                ("threshold", models.FloatField()),
                ("email_owners", models.BooleanField(default=True)),
                ("triggered_at", models.DateTimeField(editable=False, null=True)),
                ("last_triggered_at", models.DateTimeField(editable=False, null=True)),
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
