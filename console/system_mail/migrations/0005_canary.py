"""Canaries: emails that the installation sends itself."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models.functions import Now

import core.lib.model_fields


class Migration(migrations.Migration):
    dependencies = [("system_mail", "0004_queued")]

    operations = [
        migrations.AlterField(
            model_name="systemmail",
            name="kind",
            field=models.CharField(
                choices=[
                    ("invitation", "Invitation"),
                    ("reset", "password reset"),
                    ("proof", "address confirmation"),
                    ("notice", "security notice"),
                    ("canary", "Canary"),
                ],
                max_length=12,
            ),
        ),
        migrations.CreateModel(
            name="CanaryRun",
            fields=[
                ("id", core.lib.model_fields.IdField("can_", editable=False, primary_key=True, serialize=False)),
                (
                    "mail",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="canary_run",
                        to="system_mail.systemmail",
                    ),
                ),
                ("transport", models.CharField(max_length=30)),
                ("started_at", models.DateTimeField(db_default=Now(), editable=False)),
                ("returned_at", models.DateTimeField(editable=False, null=True)),
                ("source", models.BinaryField(editable=False, null=True)),
                ("signature", models.CharField(blank=True, default="", editable=False, max_length=16)),
                ("verified_at", models.DateTimeField(editable=False, null=True)),
                ("late_at", models.DateTimeField(editable=False, null=True)),
                ("pinged_at", models.DateTimeField(editable=False, null=True)),
            ],
            options={
                "verbose_name": "canary",
                "verbose_name_plural": "canaries",
                "indexes": [
                    models.Index(fields=["started_at"], name="canary_age"),
                    models.Index(fields=["transport", "-started_at"], name="canary_of_transport"),
                ],
            },
        ),
    ]
