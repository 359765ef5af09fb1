"""Erasures, with their receipts (docs/decisions/0353)."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import core.lib.model_fields


class Migration(migrations.Migration):
    initial = True
    dependencies = [("workspaces", "0019_own_limits")]

    operations = [
        migrations.CreateModel(
            name="Erasure",
            fields=[
                ("id", core.lib.model_fields.IdField("era_", editable=False, primary_key=True, serialize=False)),
                ("email", models.CharField(blank=True, max_length=254)),
                (
                    "keep_suppression",
                    models.BooleanField(
                        default=True,
                        help_text="Whether suppressions of the address stay, as a keyed hash. Otherwise they are "
                        "deleted, and the next email to the address is sent.",
                    ),
                ),
                ("counts", models.JSONField(default=dict)),
                (
                    "waiting",
                    models.PositiveIntegerField(
                        default=0,
                        help_text="The number of emails that are still on their way. They are erased afterwards.",
                    ),
                ),
                ("passes", models.PositiveSmallIntegerField(default=0)),
                ("run", core.lib.model_fields.IdField("era_", editable=False, null=True)),
                ("step", models.PositiveSmallIntegerField(default=0)),
                ("place", models.JSONField(null=True)),
                (
                    "due_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        editable=False,
                        help_text="The time of the request.",
                    ),
                ),
                (
                    "completed_at",
                    models.DateTimeField(help_text="The time when everything was erased; null before that.", null=True),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="erasures",
                        to="workspaces.workspace",
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at", "-id"],
                "indexes": [
                    models.Index(condition=models.Q(("completed_at", None)), fields=["due_at"], name="erasure_due"),
                    models.Index(fields=["workspace", "-created_at", "-id"], name="erasure_newest"),
                ],
            },
        ),
    ]
