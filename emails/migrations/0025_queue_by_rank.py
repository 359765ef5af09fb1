"""The index of ready entries begins with their rank. Workers of the earlier version sort without it."""

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # CREATE INDEX CONCURRENTLY cannot run in a transaction.
    atomic = False

    dependencies = [("emails", "0024_streams")]

    operations = [
        AddIndexConcurrently(
            model_name="queueentry",
            index=models.Index(
                condition=models.Q(("stage", 1)),
                fields=["workspace_id", "rank", "due_at"],
                name="pending_ready_by_rank",
            ),
        ),
        RemoveIndexConcurrently(model_name="queueentry", name="pending_ready"),
    ]
