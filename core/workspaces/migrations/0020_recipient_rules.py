"""Recipient rules of workspaces and API keys (docs/decisions/0388). No scan of the tables."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("workspaces", "0019_own_limits")]

    operations = [
        migrations.AddField(model, "recipient_rules", models.JSONField(editable=False, null=True))
        for model in ("workspace", "apikey")
    ]
