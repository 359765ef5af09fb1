"""Longer names of event types."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("webhooks", "0004_format"),
    ]

    operations = [
        migrations.AlterField(
            model_name="webhook",
            name="events",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(
                    choices=[
                        ("sent", "sent"),
                        ("delivered", "delivered"),
                        ("bounced", "bounced"),
                        ("failed", "failed"),
                        ("opened", "opened"),
                        ("clicked", "clicked"),
                        ("unsubscribed", "unsubscribed"),
                        ("complained", "complained"),
                        ("deferred", "deferred"),
                        ("scheduled", "scheduled"),
                        ("suppressed", "suppressed"),
                        ("domain.verified", "domain.verified"),
                        ("domain.failed", "domain.failed"),
                        ("suppression.added", "suppression.added"),
                        ("suppression.removed", "suppression.removed"),
                    ],
                    max_length=32,
                ),
                size=None,
            ),
        ),
        migrations.AlterField(
            model_name="webhookdelivery",
            name="kind",
            field=models.CharField(
                choices=[
                    ("sent", "sent"),
                    ("delivered", "delivered"),
                    ("bounced", "bounced"),
                    ("failed", "failed"),
                    ("opened", "opened"),
                    ("clicked", "clicked"),
                    ("unsubscribed", "unsubscribed"),
                    ("complained", "complained"),
                    ("deferred", "deferred"),
                    ("scheduled", "scheduled"),
                    ("suppressed", "suppressed"),
                    ("domain.verified", "domain.verified"),
                    ("domain.failed", "domain.failed"),
                    ("suppression.added", "suppression.added"),
                    ("suppression.removed", "suppression.removed"),
                ],
                max_length=32,
            ),
        ),
    ]
