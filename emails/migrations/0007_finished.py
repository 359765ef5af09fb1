"""finished_at of recipients and emails; the indexes of queue/stats."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("emails", "0006_provider_message_id")]

    operations = [
        migrations.AddField(
            "email",
            "finished_at",
            models.DateTimeField(help_text="time the last recipient finished; retention counts from here", null=True),
        ),
        migrations.AddField(
            "recipient",
            "finished_at",
            models.DateTimeField(help_text="time it left the queue for the last time", null=True),
        ),
        migrations.AddIndex(
            "pending",
            models.Index(condition=models.Q(("stage", 2)), fields=["workspace_id"], name="pending_leased"),
        ),
        migrations.AddIndex(
            "pending",
            models.Index(condition=models.Q(("stage", 0)), fields=["workspace_id", "due_at"], name="pending_waiting"),
        ),
        migrations.AddIndex(
            "pending",
            models.Index(condition=models.Q(("stage", 3)), fields=["workspace_id", "since"], name="pending_scheduled"),
        ),
    ]
