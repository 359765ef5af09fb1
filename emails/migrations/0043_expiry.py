"""The time after which an email is not sent any more (docs/decisions/0378)."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("emails", "0042_new_addresses")]

    operations = [
        migrations.AddField("email", "expires_at", models.DateTimeField(null=True)),
        migrations.AddField("email", "deliver_within", models.IntegerField(null=True)),
        migrations.AddField("queueentry", "expires_at", models.DateTimeField(help_text="that of its email", null=True)),
    ]
