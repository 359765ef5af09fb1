"""Add the template of a version, and the sample data of a template."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("templates_app", "0002_retired")]

    operations = [
        migrations.AddField(
            "templateversion",
            "template",
            models.ForeignKey(
                help_text="null after the template was deleted",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="versions",
                to="templates_app.template",
            ),
        ),
        migrations.AlterField(
            "template",
            "version",
            models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="+", to="templates_app.templateversion"
            ),
        ),
        migrations.AddField("template", "sample_data", models.TextField(db_default="", default="")),
    ]
