"""The named transport whose webhook reported an event; empty for reports of the path without a name."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("inbound", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="providerreport",
            name="transport",
            field=models.CharField(db_default="", default="", editable=False, max_length=30),
        ),
    ]
