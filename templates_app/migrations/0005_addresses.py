"""Add the default addresses of a template."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("templates_app", "0004_fill_template_of_version")]

    operations = [
        migrations.AddField("template", "sender", models.TextField(db_default="", default="")),
        migrations.AddField("template", "reply_to", models.TextField(db_default="", default="")),
    ]
