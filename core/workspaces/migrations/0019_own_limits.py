"""Limits of a workspace in place of those of its plan."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("workspaces", "0018_identities")]

    operations = [
        migrations.AddField(
            model_name="workspace",
            name="own_limits",
            field=models.JSONField(blank=True, db_default=models.Value({}, models.JSONField()), default=dict),
        ),
    ]
