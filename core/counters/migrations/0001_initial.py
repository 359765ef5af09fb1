"""The counters, whose tables the app analytics created and which keep their names."""

import django.contrib.postgres.fields
from django.db import migrations, models

import core.lib.model_fields


def identifier() -> models.BigAutoField:
    return models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")


class Migration(migrations.Migration):
    dependencies = [("analytics", "0006_slices")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name="HourlyCounter",
                    fields=[
                        ("id", identifier()),
                        ("workspace_id", core.lib.model_fields.IdField("ws_")),
                        ("hour", models.DateTimeField()),
                        ("key", models.CharField(max_length=80)),
                        ("count", models.BigIntegerField()),
                    ],
                    options={
                        "db_table": "analytics_tally",
                        "constraints": [
                            models.UniqueConstraint(fields=["workspace_id", "hour", "key"], name="one_tally_an_hour"),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="DailyCounter",
                    fields=[
                        ("id", identifier()),
                        ("workspace_id", core.lib.model_fields.IdField("ws_")),
                        ("day", models.DateField()),
                        ("key", models.CharField(max_length=80)),
                        ("count", models.BigIntegerField()),
                    ],
                    options={
                        "db_table": "analytics_tallyday",
                        "constraints": [
                            models.UniqueConstraint(fields=["workspace_id", "day", "key"], name="one_tally_a_day"),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="CounterDelta",
                    fields=[
                        ("id", identifier()),
                        ("workspace_id", core.lib.model_fields.IdField("ws_")),
                        ("hour", models.DateTimeField()),
                        ("key", models.CharField(max_length=80)),
                        ("change", models.BigIntegerField()),
                        (
                            "slices",
                            django.contrib.postgres.fields.ArrayField(
                                models.UUIDField(), db_default=[], default=list, size=None
                            ),
                        ),
                    ],
                    options={
                        "db_table": "analytics_tallydelta",
                        "indexes": [models.Index(fields=["workspace_id", "hour"], name="delta_workspace")],
                    },
                ),
                migrations.CreateModel(
                    name="SliceCounter",
                    fields=[
                        ("id", identifier()),
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
        )
    ]
