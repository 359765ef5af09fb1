"""MTA-STS policies of recipient domains, and emails that require TLS (docs/decisions/0396). No scan of the tables."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("emails", "0047_approval")]

    operations = [
        migrations.AddField(
            "email",
            "tls",
            models.CharField(
                choices=[("opportunistic", "opportunistic"), ("required", "required")],
                help_text="`required` if the email itself requires TLS to a verified mail host.",
                max_length=13,
                null=True,
            ),
        ),
        migrations.CreateModel(
            name="MtaStsPolicy",
            fields=[
                ("domain", models.CharField(max_length=253, primary_key=True, serialize=False)),
                (
                    "mode",
                    models.CharField(
                        blank=True,
                        choices=[("enforce", "enforce"), ("testing", "testing"), ("none", "none")],
                        max_length=7,
                    ),
                ),
                ("mx", django.contrib.postgres.fields.ArrayField(models.CharField(max_length=255), size=None)),
                ("max_age", models.PositiveIntegerField()),
                ("record_id", models.CharField(blank=True, max_length=32)),
                ("error", models.CharField(blank=True, max_length=1000)),
                ("checked_at", models.DateTimeField()),
                ("fetched_at", models.DateTimeField(null=True)),
                ("expires_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "emails_sts_policy",
                "verbose_name_plural": "MTA-STS policies",
                "indexes": [
                    models.Index(
                        condition=models.Q(("mode__in", ["enforce", "testing"])),
                        fields=["fetched_at"],
                        name="sts_policy_fetched",
                    )
                ],
            },
        ),
    ]
