"""The receiver of a recipient (docs/decisions/0347)."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("emails", "0035_email_by_template_set")]

    operations = [
        migrations.AddField(
            "recipient",
            "receiver",
            models.CharField(
                help_text=(
                    "The organisation that runs the recipient's mail host, such as `google`, or the registrable domain "
                    "of the host; null until it is known."
                ),
                max_length=253,
                null=True,
            ),
        )
    ]
