from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("emails", "0021_test_email_index"),
    ]

    operations = [
        migrations.AddField(
            model_name="emailbatch",
            name="is_test",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
