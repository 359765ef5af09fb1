"""The transport that has or may have a message; nullable, so that no row is rewritten."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("emails", "0026_held")]

    operations = [
        migrations.AddField(
            model_name="queueentry",
            name="handed_to",
            field=models.CharField(
                help_text="the transport that has or may have the message (emails.sending.queue)",
                max_length=30,
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="recipient",
            name="transport",
            field=models.CharField(max_length=30, null=True),
        ),
    ]
