"""When a recipient and an email were finished; the indexes that queue/stats reads."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("emails", "0006_provider_message_id")]

    operations = [
        migrations.AddField(
            "email",
            "finished_at",
            models.DateTimeField(help_text="of the last recipient; retention counts from here", null=True),
        ),
        migrations.AddField(
            "recipient",
            "finished_at",
            models.DateTimeField(help_text="when it left the queue for good", null=True),
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
