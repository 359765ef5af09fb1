"""An index of rare events, for the filter `event` of the email list."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # Workers keep adding events while the index of a large table is built.
    atomic = False
    dependencies = [("emails", "0015_past_sending_pause")]

    operations = [
        AddIndexConcurrently(
            "event",
            models.Index(
                fields=["kind", "email"],
                condition=models.Q(
                    ("kind__in", ("bounced", "failed", "deferred", "unsubscribed", "complained", "cancelled"))
                ),
                name="event_rare",
            ),
        ),
    ]
