"""Messages that RECIPIENTS sent to the inbox (docs/decisions/0387)."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("inbox", "0003_caught_by_email")]

    operations = [
        migrations.AddField("caughtmail", "is_captured", models.BooleanField(db_default=False, default=False)),
    ]
