"""Indexes for the retention of a workspace's events, and for readers of the feed of all workspaces."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # CREATE INDEX CONCURRENTLY cannot run in a transaction.
    atomic = False

    dependencies = [("events", "0002_log")]

    operations = [
        AddIndexConcurrently(
            "event",
            models.Index(
                condition=models.Q(("email", None)), fields=["workspace_id", "created_at"], name="event_workspace_age"
            ),
        ),
        AddIndexConcurrently("feedentry", models.Index(fields=["position"], name="feed_position")),
    ]
