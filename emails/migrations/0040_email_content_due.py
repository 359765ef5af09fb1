"""An index of emails whose content is removed before them, without the others."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # Emails are accepted while the index of a large table is built.
    atomic = False
    dependencies = [("emails", "0039_content_retention")]

    operations = [
        AddIndexConcurrently(
            "email",
            models.Index(
                fields=["content_hours", "finished_at"],
                condition=models.Q(("content_hours", None), _negated=True),
                name="email_content_due",
            ),
        ),
    ]
