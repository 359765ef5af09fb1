"""Language of a system email."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("system_mail", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="systemmail",
            name="language",
            field=models.CharField(db_default="en", default="en", editable=False, max_length=8),
        ),
    ]
