"""One log of events: that of the emails, which takes those of workspaces as well."""

import django.db.models.deletion
from django.db import migrations, models

import core.lib.model_fields
import events.kinds

RARE_KINDS = ("bounced", "failed", "deferred", "unsubscribed", "complained", "cancelled")


class Migration(migrations.Migration):
    dependencies = [("events", "0001_initial"), ("emails", "0022_test_batches")]

    operations = [
        # The table of emails.Event.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name="Event",
                    fields=[
                        ("number", models.BigAutoField(primary_key=True, serialize=False)),
                        ("id", core.lib.model_fields.IdField("evt_", editable=False)),
                        ("kind", models.CharField(max_length=16)),
                        ("payload", models.JSONField()),
                        ("created_at", models.DateTimeField()),
                        (
                            "email",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="events",
                                to="emails.email",
                            ),
                        ),
                        (
                            "recipient",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                null=True,
                                on_delete=django.db.models.deletion.CASCADE,
                                to="emails.recipient",
                            ),
                        ),
                    ],
                    options={
                        "db_table": "emails_event",
                        "ordering": ["number"],
                        "indexes": [
                            models.Index(fields=["email", "number"], name="event_timeline"),
                            models.Index(
                                condition=models.Q(("kind__in", RARE_KINDS)),
                                fields=["kind", "email"],
                                name="event_rare",
                            ),
                            models.Index(
                                core.lib.model_fields.IdNumber("id"),
                                condition=models.Q(("kind__in", RARE_KINDS)),
                                name="event_bounce_number",
                            ),
                        ],
                    },
                ),
            ]
        ),
        migrations.AddField("event", "workspace_id", core.lib.model_fields.IdField("ws_", null=True, editable=False)),
        migrations.AddField("event", "status", models.CharField(max_length=10, null=True)),
        migrations.AlterField("event", "kind", models.CharField(choices=events.kinds.kind_choices, max_length=32)),
        # Django's statements for it would drop the foreign key and lock the table of emails as well: a deadlock with
        # requests that accept emails.
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    "ALTER TABLE emails_event ALTER COLUMN email_id DROP NOT NULL",
                    "ALTER TABLE emails_event ALTER COLUMN email_id SET NOT NULL",
                )
            ],
            state_operations=[
                migrations.AlterField(
                    "event",
                    "email",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="events",
                        to="emails.email",
                    ),
                )
            ],
        ),
        migrations.AlterField("feedentry", "source", models.CharField(max_length=10)),
        migrations.AlterField(
            "feedprogress", "source", models.CharField(max_length=10, primary_key=True, serialize=False)
        ),
    ]
