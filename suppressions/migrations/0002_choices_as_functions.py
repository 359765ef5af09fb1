"""Reasons are a function in the state of migrations (docs/decisions/0166); the database is unchanged."""

from django.db import migrations, models

import suppressions.models


class Migration(migrations.Migration):
    dependencies = [("suppressions", "0001_initial")]

    operations = [
        migrations.AlterField(
            "suppression", "reason", models.CharField(choices=suppressions.models.suppression_reasons, max_length=16)
        )
    ]
