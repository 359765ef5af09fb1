"""An index of the streams whose content retention accepted emails do not have yet."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # Streams are used while the index is built.
    atomic = False
    dependencies = [("streams", "0004_content_retention")]

    operations = [
        AddIndexConcurrently(
            "stream",
            models.Index(
                fields=["content_changed_at"],
                condition=models.Q(("content_changed_at__isnull", False)),
                name="stream_changed",
            ),
        ),
    ]
