"""The hours for which the content of an email is kept, its removal, and sensitive emails (docs/decisions/0351)."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("emails", "0038_watched_sources")]

    operations = [
        migrations.AddField(
            "email",
            "sensitive",
            models.BooleanField(
                db_default=False,
                default=False,
                help_text="Whether nobody can read the content (docs/decisions/0352).",
            ),
        ),
        migrations.AddField("email", "content_hours", models.SmallIntegerField(null=True)),
        migrations.AddField("email", "content_removed_at", models.DateTimeField(null=True)),
    ]
