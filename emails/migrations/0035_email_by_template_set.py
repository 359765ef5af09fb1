"""An index of emails with a layout or partials, without the others."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # Emails are accepted while the index of a large table is built.
    atomic = False
    dependencies = [("emails", "0034_locale")]

    operations = [
        AddIndexConcurrently(
            "email",
            models.Index(
                fields=["template_set"],
                condition=models.Q(("template_set", None), _negated=True),
                name="email_by_template_set",
            ),
        ),
    ]
