"""The place of a file in its message; all files so far are attachments or inline images."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("emails", "0013_entrance")]

    operations = [
        migrations.AddField(
            model_name="attachment",
            name="placement",
            field=models.CharField(
                choices=[("attached", "attached"), ("alternative", "alternative"), ("whole", "whole")],
                db_default="attached",
                max_length=16,
            ),
        ),
    ]
