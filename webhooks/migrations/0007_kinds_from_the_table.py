"""The kinds of events come from the table in events.kinds, so that a new one needs no migration."""

import django.contrib.postgres.fields
from django.db import migrations, models

from webhooks.models import webhook_kind_choices


class Migration(migrations.Migration):
    dependencies = [("webhooks", "0006_feed_cursor")]

    operations = [
        migrations.AlterField(
            "webhook",
            "events",
            django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(choices=webhook_kind_choices, max_length=32), size=None
            ),
        ),
        migrations.AlterField("webhookdelivery", "kind", models.CharField(choices=webhook_kind_choices, max_length=32)),
    ]
