"""Messages that are captured or redirected (docs/decisions/0387). No scan of the tables."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("emails", "0044_pending_expiring")]

    operations = [
        migrations.AddField("email", "is_diverted", models.BooleanField(db_default=False, default=False)),
        migrations.AddField(
            "recipient",
            "diversion",
            models.CharField(
                choices=[("captured", "captured"), ("redirected", "redirected")], max_length=10, null=True
            ),
        ),
    ]
