"""Streams whose emails wait for the decision of a person (docs/decisions/0390)."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("streams", "0007_deliver_within")]

    operations = [
        migrations.AddField(
            model_name="stream",
            name="approval",
            field=models.CharField(
                blank=True,
                choices=[("required", "required")],
                db_default="",
                default="",
                help_text="`required`: its emails wait until a person approves them; absent if they do not.",
                max_length=8,
            ),
        ),
    ]
