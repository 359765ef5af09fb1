"""The route of transports of a stream; empty for that of its workspace."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("streams", "0002_pause_code")]

    operations = [
        migrations.AddField(
            model_name="stream",
            name="transport_route",
            field=models.CharField(blank=True, db_default="", default="", max_length=30),
        ),
    ]
