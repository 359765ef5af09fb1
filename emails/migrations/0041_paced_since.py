"""The time since which a queue entry waits for the pace of a receiver."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("emails", "0040_email_content_due")]

    operations = [
        migrations.AddField(
            "queueentry",
            "paced_since",
            models.DateTimeField(null=True, help_text="when it began to wait for a pace, until an attempt"),
        ),
    ]
