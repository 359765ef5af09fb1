"""The reason of a pause in other languages."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("streams", "0001_initial")]

    operations = [
        migrations.AddField(model_name="stream", name="paused_code", field=models.JSONField(editable=False, null=True)),
    ]
