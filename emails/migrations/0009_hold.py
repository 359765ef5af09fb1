"""Table of the sending pause: while it has a row, workers claim nothing (docs/decisions/0060)."""

import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("emails", "0008_count_recipients")]

    operations = [
        migrations.CreateModel(
            name="Hold",
            fields=[
                ("id", models.PositiveSmallIntegerField(default=1, editable=False, primary_key=True, serialize=False)),
                (
                    "since",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
            ],
            options={"constraints": [models.CheckConstraint(condition=models.Q(("id", 1)), name="one_hold")]},
        ),
    ]
