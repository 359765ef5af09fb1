"""The API key that accepted an email, and windows of caps (docs/decisions/0388, 0389). No scan of the table."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("workspaces", "0020_recipient_rules"), ("emails", "0045_diversion")]

    operations = [
        migrations.AddField(
            "email",
            "api_key",
            models.ForeignKey(
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="+",
                to="workspaces.apikey",
            ),
        ),
        migrations.CreateModel(
            "CapWindow",
            fields=[
                ("id", models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ("uses", models.JSONField(default=dict)),
                ("expires_at", models.DateTimeField(db_index=True)),
            ],
        ),
    ]
