"""An index of the numbers of bounces, the only ids that some clients can store."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

from core.lib.model_fields import IdNumber


class Migration(migrations.Migration):
    # Workers keep adding events while the index of a large table is built.
    atomic = False
    dependencies = [("emails", "0016_rare_events")]

    operations = [
        AddIndexConcurrently(
            "event",
            models.Index(
                IdNumber("id"),
                condition=models.Q(
                    ("kind__in", ("bounced", "failed", "deferred", "unsubscribed", "complained", "cancelled"))
                ),
                name="event_bounce_number",
            ),
        ),
    ]
