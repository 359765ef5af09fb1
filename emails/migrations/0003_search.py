"""Search index: trigrams of the search text (docs/decisions/0011)."""

from django.contrib.postgres.operations import TrigramExtension
from django.db import migrations

# A short pending list (kB): the insert that flushes it delays an API request.
INDEX = (
    "CREATE INDEX email_search ON emails_email USING gin (search_text gin_trgm_ops) WITH (gin_pending_list_limit = 512)"
)


class Migration(migrations.Migration):
    dependencies = [("emails", "0002_storage")]

    operations = [
        TrigramExtension(),
        migrations.RunSQL(INDEX, "DROP INDEX email_search"),
    ]
