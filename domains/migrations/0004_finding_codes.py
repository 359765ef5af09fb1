"""Domains have the codes and values of the messages of their last check, besides the English texts."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("domains", "0003_tls_policy")]

    operations = [migrations.AddField("domain", "finding_codes", models.JSONField(editable=False, null=True))]
