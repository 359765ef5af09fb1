"""The times of emails to the staff about block lists (docs/decisions/0278)."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("emails", "0031_recipient_by_address")]

    operations = [migrations.AddField("transportuse", "listings", models.JSONField(null=True))]
