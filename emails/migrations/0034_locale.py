"""The language of an email, and the layout and partials that it was accepted with."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("emails", "0033_waits_for"), ("templates_app", "0006_sets")]

    operations = [
        migrations.AddField(
            "email",
            "template_set",
            models.ForeignKey(
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                to="templates_app.templateset",
            ),
        ),
        migrations.AddField(
            "email",
            "locale",
            models.CharField(
                help_text="The language that the request asked for; null without one.", max_length=35, null=True
            ),
        ),
        migrations.AddField(
            "email",
            "locale_used",
            models.CharField(help_text="The language of the texts; null if it is not known.", max_length=35, null=True),
        ),
    ]
