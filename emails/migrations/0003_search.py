"""The index behind search: trigrams of what is searched (docs/decisions/0011)."""

from django.contrib.postgres.operations import TrigramExtension
from django.db import migrations

INDEX = "CREATE INDEX email_search ON emails_email USING gin (search_text gin_trgm_ops)"


class Migration(migrations.Migration):
    dependencies = [("emails", "0002_storage")]

    operations = [
        TrigramExtension(),
        migrations.RunSQL(INDEX, "DROP INDEX email_search"),
    ]
