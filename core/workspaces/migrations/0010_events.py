"""Events of a workspace outside of the timelines."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import core.lib.model_fields


class Migration(migrations.Migration):
    dependencies = [
        ("workspaces", "0009_audit_by_action"),
    ]

    operations = [
        migrations.CreateModel(
            name="WorkspaceEvent",
            fields=[
                ("number", models.BigAutoField(primary_key=True, serialize=False)),
                ("id", core.lib.model_fields.IdField("evt_", editable=False)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("suppressed", "Suppressed"),
                            ("domain.verified", "Domain Verified"),
                            ("domain.failed", "Domain Failed"),
                            ("suppression.added", "Suppression Added"),
                            ("suppression.removed", "Suppression Removed"),
                        ],
                        max_length=32,
                    ),
                ),
                ("payload", models.JSONField()),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="events",
                        to="workspaces.workspace",
                    ),
                ),
            ],
            options={
                "ordering": ["number"],
                "indexes": [models.Index(fields=["workspace", "created_at"], name="workspace_event_age")],
            },
        ),
    ]
