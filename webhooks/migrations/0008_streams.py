"""An endpoint may get the events of some streams only."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("webhooks", "0007_kinds_from_the_table")]

    operations = [
        migrations.AddField(
            model_name="webhook",
            name="streams",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=40), blank=True, db_default=[], default=list, size=None
            ),
        ),
    ]
