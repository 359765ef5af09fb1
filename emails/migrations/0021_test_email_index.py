from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # CREATE INDEX CONCURRENTLY cannot run in a transaction.
    atomic = False

    dependencies = [
        ("emails", "0020_test_emails"),
    ]

    operations = [
        AddIndexConcurrently(
            model_name="email",
            index=models.Index(
                condition=models.Q(is_test=True), fields=["workspace", "-created_at", "-id"], name="email_test"
            ),
        ),
    ]
