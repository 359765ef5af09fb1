"""The label of a system email that is queued; no change of the database."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("system_mail", "0003_handed_to")]

    operations = [
        migrations.AlterField(
            model_name="systemmail",
            name="state",
            field=models.CharField(
                choices=[("waiting", "Queued"), ("sent", "Sent"), ("failed", "Failed"), ("nobody", "no such account")],
                default="waiting",
                max_length=8,
            ),
        ),
    ]
