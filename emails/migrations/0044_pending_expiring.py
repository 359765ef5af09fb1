"""An index of the queue entries that expire, without the others."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # Emails are accepted while the index of a long queue is built.
    atomic = False
    dependencies = [("emails", "0043_expiry")]

    operations = [
        AddIndexConcurrently(
            "queueentry",
            models.Index(
                condition=models.Q(("expires_at__isnull", False)), fields=["expires_at"], name="pending_expiring"
            ),
        ),
    ]
