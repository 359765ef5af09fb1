"""Sensitive templates (docs/decisions/0352)."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("templates_app", "0006_sets")]

    operations = [
        migrations.AddField(
            "template",
            "sensitive",
            models.BooleanField(
                db_default=False,
                default=False,
                help_text="Whether nobody can read the content of its emails, which is removed after the last outcome.",
            ),
        ),
    ]
