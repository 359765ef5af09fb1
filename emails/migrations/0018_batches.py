"""Batches of emails that are paused or cancelled together."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

import core.lib.model_fields


class Migration(migrations.Migration):
    # Emails are accepted and sent while the index is built; no row has a batch yet.
    atomic = False
    dependencies = [("emails", "0017_bounce_numbers"), ("workspaces", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="EmailBatch",
            fields=[
                ("id", core.lib.model_fields.IdField("bat_", primary_key=True, serialize=False)),
                (
                    "state",
                    models.CharField(
                        choices=[("open", "Open"), ("paused", "Paused"), ("cancelled", "Cancelled")],
                        default="open",
                        max_length=16,
                    ),
                ),
                ("size", models.PositiveIntegerField(default=0, help_text="emails added so far")),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.CASCADE, to="workspaces.workspace"
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "email batches",
                "ordering": ["-created_at", "-id"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "open"), _negated=True),
                        fields=["workspace", "-created_at", "-id"],
                        name="batch_closed",
                    )
                ],
            },
        ),
        migrations.AddField(
            model_name="email",
            name="batch",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                to="emails.emailbatch",
            ),
        ),
        AddIndexConcurrently(
            "email",
            models.Index(condition=models.Q(("batch", None), _negated=True), fields=["batch"], name="email_batch"),
        ),
    ]
