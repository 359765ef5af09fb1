"""Audit entries and suspensions have the code and values of their texts, besides the English text."""

from django.db import migrations, models

import core.workspaces.models


class Migration(migrations.Migration):
    dependencies = [("workspaces", "0015_events_elsewhere")]

    operations = [
        migrations.AddField("auditentry", "about_code", models.JSONField(null=True)),
        migrations.AddField("workspace", "suspended_code", models.JSONField(editable=False, null=True)),
        # Changes no column; another action needs no migration any more.
        migrations.AlterField(
            "auditentry", "act", models.CharField(choices=core.workspaces.models.audit_actions, max_length=24)
        ),
    ]
