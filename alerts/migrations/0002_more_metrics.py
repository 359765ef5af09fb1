"""Times to send, deferrals, waiting emails and silent streams as metrics, and the sends of the latter."""

import django.db.models.deletion
from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models

import alerts.models


class Migration(migrations.Migration):
    dependencies = [("alerts", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="SendPattern",
            fields=[
                (
                    "alert",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="pattern",
                        serialize=False,
                        to="alerts.alert",
                    ),
                ),
                (
                    "sends",
                    ArrayField(base_field=models.BigIntegerField(), db_default=[], default=list, size=None),
                ),
                (
                    "emails",
                    ArrayField(base_field=models.SmallIntegerField(), db_default=[], default=list, size=None),
                ),
                ("read_until", models.BigIntegerField(db_default=0, default=0)),
                ("last_send", models.BigIntegerField(db_default=0, default=0)),
                (
                    "rates",
                    ArrayField(base_field=models.FloatField(), db_default=[], default=list, size=None),
                ),
                ("usual_sends", models.FloatField(db_default=0, default=0)),
                ("usual_seconds", models.FloatField(db_default=0, default=0)),
                ("learned_at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.AlterField(
            model_name="alert",
            name="metric",
            field=models.CharField(
                choices=alerts.models.alert_metrics,
                help_text="The watched value: `bounce_rate` and `complaint_rate` of recipients, `failure_rate` of "
                "emails, each over seven days; `quota_used` of the month; `latency_p95`, the seconds within which 95 % "
                "of the recipients had an outcome, and `deferred_share` of recipients, both since the previous hour "
                "began; `waiting`, emails older than ten minutes; or `silent`, a stream that has not sent for several "
                "of its usual gaps.",
                max_length=32,
            ),
        ),
        migrations.AlterField(
            model_name="alert",
            name="threshold",
            field=models.FloatField(
                help_text="The value at which the alert begins: in percent, in seconds (`latency_p95`), in emails "
                "(`waiting`), or in usual gaps (`silent`). It ends below nine tenths of it."
            ),
        ),
    ]
