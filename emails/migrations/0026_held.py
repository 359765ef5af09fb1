"""Entries of paused streams are held: a stage and an index of their own."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # CREATE INDEX CONCURRENTLY cannot run in a transaction.
    atomic = False

    dependencies = [("emails", "0025_queue_by_rank")]

    operations = [
        migrations.AlterField(
            model_name="queueentry",
            name="stage",
            field=models.PositiveSmallIntegerField(
                choices=[(0, "Waiting"), (1, "Ready"), (2, "Leased"), (3, "Scheduled"), (4, "Held")]
            ),
        ),
        migrations.AlterField(
            model_name="queueentry",
            name="due_at",
            field=models.DateTimeField(help_text="end of the wait or the lease; of a held entry, the time it was held"),
        ),
        migrations.AlterField(
            model_name="queueentry",
            name="since",
            field=models.DateTimeField(
                help_text="time it was first due, later by the time it was held; its age counts from here"
            ),
        ),
        AddIndexConcurrently(
            model_name="queueentry",
            index=models.Index(
                condition=models.Q(("stage", 4)), fields=["workspace_id", "rank", "due_at"], name="pending_held"
            ),
        ),
    ]
