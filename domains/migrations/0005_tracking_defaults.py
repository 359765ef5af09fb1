"""Domains decide what emails without the option track."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("domains", "0004_finding_codes")]

    operations = [
        migrations.AddField(
            "domain", name, models.BooleanField(db_default=True, help_text="of emails without the option")
        )
        for name in ("open_tracking", "click_tracking")
    ]
