"""Table of ended sending pauses, for notes about possible second copies (docs/decisions/0092)."""

import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("emails", "0014_placement")]

    operations = [
        migrations.CreateModel(
            name="PastSendingPause",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("since", models.DateTimeField(editable=False)),
                ("until", models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
            ],
            options={"db_table": "emails_past_hold"},
        ),
    ]
