"""Whether a caught message has its content (docs/decisions/0351)."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("inbox", "0001_initial")]

    operations = [
        migrations.AddField("caughtmail", "keeps_content", models.BooleanField(db_default=True, default=True)),
    ]
