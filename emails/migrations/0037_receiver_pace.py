"""The paces of receivers, and the entries that wait for them (docs/decisions/0362)."""

import django.db.models.functions.datetime
from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # Emails are sent while the indexes of a large table are built.
    atomic = False
    dependencies = [("emails", "0036_receiver")]

    operations = [
        migrations.CreateModel(
            name="ReceiverPace",
            fields=[
                ("id", models.AutoField(primary_key=True, serialize=False)),
                (
                    "source",
                    models.CharField(
                        max_length=100, help_text="addresses that are connected from; empty for the system's"
                    ),
                ),
                ("receiver", models.CharField(max_length=253, help_text="key of core.delivery.receivers")),
                ("pace", models.JSONField(default=dict)),
                ("leases", models.JSONField(default=dict)),
                ("updated_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "release_at",
                    models.DateTimeField(
                        null=True, help_text="when waiting entries are released next; null without any"
                    ),
                ),
                ("pinned", models.FloatField(null=True, help_text="messages a minute, set by the staff")),
                ("stopped_at", models.DateTimeField(null=True, help_text="since when the staff has suspended it")),
                ("day", models.DateField(null=True, help_text="the UTC day of the counts")),
                ("accepted", models.PositiveIntegerField(db_default=0)),
                ("slowed", models.PositiveIntegerField(db_default=0, help_text="signals")),
                ("signal_at", models.DateTimeField(null=True)),
                (
                    "signal",
                    models.CharField(
                        max_length=1100, db_default="", help_text="reply of the last signal, safe to show"
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["release_at"],
                        condition=models.Q(("release_at__isnull", False)),
                        name="pace_release",
                    )
                ],
                "constraints": [models.UniqueConstraint(fields=["source", "receiver"], name="one_pace_for_a_pair")],
            },
        ),
        migrations.AddField("queueentry", "pair", models.IntegerField(null=True)),
        migrations.AlterField(
            "queueentry",
            "stage",
            models.PositiveSmallIntegerField(
                choices=[(0, "Waiting"), (1, "Ready"), (2, "Leased"), (3, "Scheduled"), (4, "Held"), (5, "Paced")]
            ),
        ),
        migrations.AlterField(
            "queueentry",
            "due_at",
            models.DateTimeField(
                help_text=(
                    "end of the wait or the lease; of a held entry, the time it was held; of a paced one, its last time"
                )
            ),
        ),
        AddIndexConcurrently(
            "queueentry",
            models.Index(
                fields=["pair", "workspace_id", "rank", "since"],
                condition=models.Q(("stage", 5)),
                name="pending_paced",
            ),
        ),
        AddIndexConcurrently(
            "queueentry",
            models.Index(fields=["due_at"], condition=models.Q(("stage__in", [0, 2, 3, 5])), name="pending_timed"),
        ),
        # Statements of the version before use the wider one.
        RemoveIndexConcurrently("queueentry", "pending_due"),
    ]
