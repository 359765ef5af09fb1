"""When a received email is forwarded by its route, after it was published (docs/decisions/0281)."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    # CREATE INDEX CONCURRENTLY cannot run in a transaction.
    atomic = False
    dependencies = [("receiving", "0004_rereading")]

    operations = [
        migrations.AddField("receivedemail", "forward_due_at", models.DateTimeField(null=True, editable=False)),
        # Without the constraint of a positive number, which would read the whole table.
        migrations.AddField(
            "receivedemail", "forward_attempts", models.SmallIntegerField(db_default=0, editable=False)
        ),
        AddIndexConcurrently(
            "receivedemail",
            models.Index(fields=["forward_due_at"], condition=~Q(forward_due_at=None), name="received_to_forward"),
        ),
    ]
