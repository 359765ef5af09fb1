"""The time within which a template's emails are sent (docs/decisions/0378)."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("templates_app", "0007_sensitive")]

    operations = [
        migrations.AddField(
            "template",
            "deliver_within",
            models.IntegerField(
                blank=True,
                help_text="The seconds from acceptance, or from the scheduled time, after which an email that has no "
                "expiry of its own is not sent any more; null as the stream has it.",
                null=True,
            ),
        ),
    ]
