"""Add the time at which a template version was replaced or its template deleted."""

from django.db import migrations, models

FILL = """
UPDATE templates_app_templateversion v SET retired_at = now()
 WHERE NOT EXISTS (SELECT FROM templates_app_template t WHERE t.version_id = v.id);
"""


class Migration(migrations.Migration):
    dependencies = [("templates_app", "0001_initial")]

    operations = [
        migrations.AddField(
            "templateversion",
            "retired_at",
            models.DateTimeField(help_text="replaced, or its template deleted", null=True),
        ),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
    ]
