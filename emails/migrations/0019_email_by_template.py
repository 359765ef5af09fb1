"""An index of emails from templates, for the last use of a template."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # Emails are accepted while the index of a large table is built.
    atomic = False
    dependencies = [("emails", "0018_batches")]

    operations = [
        AddIndexConcurrently(
            "email",
            models.Index(
                fields=["workspace", "template_id", "-created_at"],
                condition=models.Q(("template_id__isnull", False)),
                name="email_by_template",
            ),
        ),
    ]
