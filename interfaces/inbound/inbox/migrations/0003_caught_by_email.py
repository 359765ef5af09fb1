"""An index of caught messages by email, for the removal of contents."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # Messages are caught while the index of a large table is built.
    atomic = False
    dependencies = [("inbox", "0002_keeps_content")]

    operations = [
        AddIndexConcurrently(
            "caughtmail",
            models.Index(
                fields=["email_id"],
                condition=models.Q(("email_id", None), _negated=True),
                name="caught_by_email",
            ),
        ),
    ]
