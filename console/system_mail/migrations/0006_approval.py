"""System emails that ask for approval (docs/decisions/0390)."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("system_mail", "0005_canary")]

    operations = [
        migrations.AlterField(
            "systemmail",
            "kind",
            models.CharField(
                choices=[
                    ("invitation", "Invitation"),
                    ("reset", "password reset"),
                    ("proof", "address confirmation"),
                    ("notice", "security notice"),
                    ("canary", "Canary"),
                    ("approval", "request for approval"),
                ],
                max_length=12,
            ),
        ),
    ]
