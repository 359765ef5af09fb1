"""The entrance of an email; all emails so far came through the API or are copies of such."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("emails", "0012_plain_model_names")]

    operations = [
        migrations.AddField(
            model_name="email",
            name="entrance",
            field=models.CharField(
                choices=[
                    ("api", "API"),
                    ("smtp", "SMTP"),
                    ("dashboard", "Dashboard"),
                    ("compatibility", "Compatibility"),
                ],
                db_default="api",
                max_length=16,
            ),
        ),
    ]
