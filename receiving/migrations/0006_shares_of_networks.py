"""The storage and the messages of the day that one network uses of a workspace's (docs/decisions/0296)."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("receiving", "0005_due_forwards"), ("workspaces", "0017_choices_as_functions")]

    operations = [
        migrations.CreateModel(
            name="NetworkUsage",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("network", models.CharField(max_length=43)),
                ("stored_bytes", models.BigIntegerField(default=0)),
                ("day", models.DateField()),
                ("messages", models.PositiveIntegerField(default=0)),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="receiving_networks",
                        to="workspaces.workspace",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("workspace", "network"), name="one_usage_a_network")],
            },
        ),
    ]
