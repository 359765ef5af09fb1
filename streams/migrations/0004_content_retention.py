"""The time for which the content of emails is kept, and sensitive streams (docs/decisions/0351)."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("streams", "0003_transport_route")]

    operations = [
        migrations.AddField(
            model_name="stream",
            name="content_retention",
            field=models.SmallIntegerField(
                blank=True,
                help_text="The hours after the last outcome for which the content of an email is kept; null as long "
                "as the email.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="stream",
            name="content_changed_at",
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="stream",
            name="sensitive",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="Whether nobody can read the content of its emails, which is removed after the last outcome.",
            ),
        ),
    ]
