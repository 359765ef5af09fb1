from django.db import migrations, models

from webhooks.formats import format_choices


class Migration(migrations.Migration):
    dependencies = [("webhooks", "0003_pending_delivery")]

    operations = [
        migrations.AddField(
            model_name="webhook",
            name="format",
            field=models.CharField(choices=format_choices, db_default="standard", default="standard", max_length=16),
        ),
    ]
