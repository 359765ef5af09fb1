"""An index of bounces, deferrals and failures by workspace and time (docs/decisions/0248)."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # CREATE INDEX CONCURRENTLY cannot run in a transaction.
    atomic = False
    dependencies = [("events", "0004_former_events")]

    operations = [
        AddIndexConcurrently(
            "event",
            models.Index(
                condition=models.Q(("kind__in", ("bounced", "failed", "deferred"))),
                fields=["workspace_id", "kind", "created_at"],
                name="event_failure",
            ),
        ),
    ]
