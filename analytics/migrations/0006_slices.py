"""Counters of slices: emails with one tag, template or sending domain."""

from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("analytics", "0005_plain_model_names")]

    operations = [
        migrations.AddField(
            "counterdelta", "slices", ArrayField(models.UUIDField(), default=list, db_default=[], size=None)
        ),
        migrations.CreateModel(
            name="SliceCounter",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("slice", models.UUIDField()),
                ("day", models.DateField()),
                ("key", models.CharField(max_length=80)),
                ("count", models.BigIntegerField()),
            ],
            options={
                "db_table": "analytics_slice",
                "constraints": [
                    models.UniqueConstraint(fields=["slice", "day", "key"], name="one_count_a_slice_and_day"),
                ],
            },
        ),
    ]
