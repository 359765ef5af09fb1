"""The links in a domain's emails can have a host name of the domain."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models.functions import Now

import core.lib.model_fields


class Migration(migrations.Migration):
    dependencies = [("domains", "0005_tracking_defaults"), ("workspaces", "0017_choices_as_functions")]

    operations = [
        migrations.CreateModel(
            name="TrackingHost",
            fields=[
                ("id", core.lib.model_fields.IdField("th_", editable=False, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=253)),
                (
                    "status",
                    models.CharField(
                        choices=[("pending", "Pending"), ("active", "Active"), ("failed", "Failed")],
                        db_default="pending",
                        max_length=16,
                    ),
                ),
                ("created_at", models.DateTimeField(db_default=Now(), editable=False)),
                ("seen_at", models.DateTimeField(editable=False, null=True)),
                ("proven_at", models.DateTimeField(editable=False, null=True)),
                ("retired_at", models.DateTimeField(editable=False, null=True)),
                (
                    "findings",
                    models.JSONField(db_default=models.Value({}, models.JSONField()), editable=False),
                ),
                ("finding_codes", models.JSONField(editable=False, null=True)),
                (
                    "domain",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="tracking_host",
                        to="domains.domain",
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tracking_hosts",
                        to="workspaces.workspace",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("proven_at__isnull", False), ("retired_at__isnull", True)),
                        fields=("name",),
                        name="one_workspace_a_tracking_host",
                    )
                ],
            },
        ),
    ]
