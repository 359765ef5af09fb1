"""Model names QueueEntry and SendingPause; their tables keep their names."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("emails", "0011_fast_compression")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RenameModel("Pending", "QueueEntry"),
                migrations.AlterModelTable("queueentry", "emails_pending"),
                migrations.RenameModel("Hold", "SendingPause"),
                migrations.AlterModelTable("sendingpause", "emails_hold"),
            ]
        )
    ]
