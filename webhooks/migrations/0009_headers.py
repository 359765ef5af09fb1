"""Further headers of the requests to an endpoint."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("webhooks", "0008_streams")]

    operations = [
        migrations.AddField(
            model_name="webhook",
            name="sealed_headers",
            field=models.TextField(blank=True, db_default="", default="", editable=False),
        ),
    ]
