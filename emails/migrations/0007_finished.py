"""When a recipient and an email were finished; the two indexes that queue/stats reads."""

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
            models.Index(
                models.F("workspace_id"),
                models.Case(models.When(stage=3, then="since"), default="due_at"),
                condition=models.Q(("stage__in", [0, 3])),
                name="pending_later",
            ),
        ),
    ]
