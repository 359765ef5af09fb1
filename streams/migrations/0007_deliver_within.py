"""The time within which a stream's emails are sent (docs/decisions/0378)."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("streams", "0006_tracking_detail")]

    operations = [
        migrations.AddField(
            model_name="stream",
            name="deliver_within",
            field=models.IntegerField(
                blank=True,
                help_text="The seconds from acceptance, or from the scheduled time, after which an email that has no "
                "expiry of its own is not sent any more; null for any time.",
                null=True,
            ),
        ),
    ]
