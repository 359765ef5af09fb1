from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("emails", "0019_email_by_template"),
    ]

    operations = [
        migrations.AddField(
            model_name="email",
            name="is_test",
            field=models.BooleanField(db_default=False, default=False),
        ),
        # Idempotency keys of test emails have a prefix.
        migrations.AlterField(
            model_name="acceptance",
            name="key",
            field=models.CharField(max_length=260),
        ),
    ]
