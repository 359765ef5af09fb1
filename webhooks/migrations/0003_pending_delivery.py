"""Queue entries get a model name that is unique in the project; the table stays."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("webhooks", "0002_storage")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterModelTable("pending", "webhooks_pending"),
                migrations.RenameModel("Pending", "PendingDelivery"),
            ]
        )
    ]
