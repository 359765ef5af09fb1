"""The cause for which a queue entry is parked (docs/decisions/0284)."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("emails", "0032_transport_listings")]

    operations = [migrations.AddField("queueentry", "waits_for", models.CharField(max_length=20, null=True))]
