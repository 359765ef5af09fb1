"""Plans and scopes are functions in the state of migrations (docs/decisions/0166); the database is unchanged."""

from django.db import migrations, models

import core.workspaces.models


class Migration(migrations.Migration):
    dependencies = [("workspaces", "0016_text_codes")]

    operations = [
        migrations.AlterField(
            "apikey", "scope", models.CharField(choices=core.workspaces.models.key_scopes, max_length=16)
        ),
        migrations.AlterField(
            "workspace", "plan", models.CharField(choices=core.workspaces.models.plan_choices, max_length=16)
        ),
    ]
