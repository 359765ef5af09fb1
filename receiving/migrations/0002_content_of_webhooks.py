"""Whether webhooks contain the files and the source of an email."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("receiving", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="receivedemail",
            name="includes_raw",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="receivedemail",
            name="inlines_files",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
