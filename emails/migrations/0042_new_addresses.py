"""The messages of a day of new addresses, and the rate of listed ones (docs/decisions/0366, 0367)."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("emails", "0041_paced_since")]

    operations = [
        migrations.AddField(
            "receiverpace",
            "accepted_before",
            models.PositiveIntegerField(db_default=0, help_text="on the day before"),
        ),
        migrations.AddField(
            "receiverpace",
            "began_on",
            models.DateField(null=True, help_text="first UTC day at the receiver, of an address that is new"),
        ),
        migrations.AddField(
            "receiverpace", "reserved", models.JSONField(null=True, help_text="messages of leases; null without any")
        ),
        migrations.AddField(
            "receiverpace",
            "former_rate",
            models.FloatField(null=True, help_text="messages a minute before the address was listed; null if not"),
        ),
    ]
