"""Recipient domains that ask for TLS reports (docs/decisions/0399). No rewrite: the columns have constant defaults."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("emails", "0048_tls_policy")]

    operations = [
        migrations.AddField(
            "mtastspolicy", "failure", models.CharField(blank=True, db_default="", default="", max_length=40)
        ),
        migrations.AddField(
            "mtastspolicy", "report_to", models.CharField(blank=True, db_default="", default="", max_length=500)
        ),
        migrations.AddField(
            "mtastspolicy",
            "tlsa",
            django.contrib.postgres.fields.ArrayField(
                models.CharField(max_length=500), db_default=[], default=list, size=None
            ),
        ),
    ]
