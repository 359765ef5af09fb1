"""The DNS zone of a domain with its provider, and the link that shows its records."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("domains", "0008_receiving")]

    operations = [
        migrations.AddField(
            model_name="domain",
            name="zone_name",
            field=models.CharField(db_default="", editable=False, max_length=253),
        ),
        migrations.AddField(
            model_name="domain",
            name="dns_provider",
            field=models.CharField(db_default="", editable=False, max_length=32),
        ),
        migrations.AddField(
            model_name="domain",
            name="records_shared_until",
            field=models.DateTimeField(editable=False, null=True),
        ),
    ]
