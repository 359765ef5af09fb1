"""The transport that has or may have a system email."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("system_mail", "0002_language")]

    operations = [
        migrations.AddField(
            model_name="systemmail",
            name="handed_to",
            field=models.CharField(editable=False, max_length=30, null=True),
        ),
    ]
