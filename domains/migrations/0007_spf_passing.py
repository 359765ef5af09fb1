"""The mechanisms that pass by a domain's SPF record, for the alignment of transports."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("domains", "0006_tracking_hosts")]

    operations = [
        migrations.AddField(
            model_name="domain",
            name="spf_passing",
            field=models.TextField(editable=False, null=True),
        ),
    ]
