"""TLS reports to recipient domains (docs/decisions/0399)."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("system_mail", "0006_approval")]

    operations = [
        migrations.AlterField(
            "systemmail",
            "kind",
            models.CharField(
                choices=[
                    ("invitation", "Invitation"),
                    ("reset", "password reset"),
                    ("proof", "address confirmation"),
                    ("notice", "security notice"),
                    ("canary", "Canary"),
                    ("approval", "request for approval"),
                    ("tls_report", "TLS report"),
                ],
                max_length=12,
            ),
        ),
        migrations.CreateModel(
            name="TlsReport",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("domain", models.CharField(max_length=253)),
                ("day", models.DateField()),
                ("report_to", models.CharField(max_length=500)),
                ("content", models.JSONField()),
                ("successes", models.BigIntegerField()),
                ("failures", models.BigIntegerField()),
                ("due_at", models.DateTimeField(null=True)),
                ("ends_at", models.DateTimeField()),
                ("posted_at", models.DateTimeField(null=True)),
                ("error", models.CharField(blank=True, max_length=300)),
                (
                    "mail",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tls_report",
                        to="system_mail.systemmail",
                    ),
                ),
            ],
            options={
                "verbose_name": "TLS report",
                "indexes": [
                    models.Index(
                        condition=models.Q(("due_at__isnull", False)), fields=["due_at"], name="tls_report_due"
                    )
                ],
                "constraints": [models.UniqueConstraint(fields=("day", "domain"), name="one_tls_report_a_day")],
            },
        ),
    ]
