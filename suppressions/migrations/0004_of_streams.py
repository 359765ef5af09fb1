"""The index of the suppressions of single streams."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # CREATE INDEX CONCURRENTLY cannot run in a transaction.
    atomic = False

    dependencies = [("suppressions", "0003_streams")]

    operations = [
        AddIndexConcurrently(
            model_name="suppression",
            index=models.Index(
                condition=models.Q(("stream", ""), _negated=True),
                fields=["workspace", "stream", "-created_at", "-id"],
                name="suppressions_of_streams",
            ),
        ),
    ]
