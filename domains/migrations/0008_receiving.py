"""A workspace can receive the email of a domain."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import core.lib.model_fields


class Migration(migrations.Migration):
    dependencies = [
        ("domains", "0007_spf_passing"),
        ("workspaces", "0018_identities"),
    ]

    operations = [
        migrations.CreateModel(
            name="ReceivingDomain",
            fields=[
                ("id", core.lib.model_fields.IdField("rd_", editable=False, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=253)),
                (
                    "status",
                    models.CharField(
                        choices=[("pending", "Pending"), ("active", "Active"), ("failed", "Failed")],
                        db_default="pending",
                        max_length=16,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("proven_at", models.DateTimeField(editable=False, null=True)),
                ("missing_since", models.DateTimeField(editable=False, null=True)),
                ("absences", models.PositiveSmallIntegerField(db_default=0, editable=False)),
                ("findings", models.JSONField(db_default=models.Value({}, models.JSONField()), editable=False)),
                ("finding_codes", models.JSONField(editable=False, null=True)),
                (
                    "domain",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="receiving_domain",
                        to="domains.domain",
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="receiving_domains",
                        to="workspaces.workspace",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("proven_at__isnull", False)),
                        fields=("name",),
                        name="one_workspace_receives_a_domain",
                    )
                ],
            },
        ),
    ]
