from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("workspaces", "0012_deletion"),
    ]

    operations = [
        migrations.AddField(
            model_name="apikey",
            name="restrictions",
            field=models.JSONField(
                blank=True, db_default=models.Value({}, models.JSONField()), default=dict, editable=False
            ),
        ),
    ]
