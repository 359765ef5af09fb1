"""The index behind search: trigrams of what is searched (docs/decisions/0011)."""

from django.contrib.postgres.operations import TrigramExtension
from django.db import migrations

# A short list of pending entries (kB): the insert that has to work it off is a request somebody waits for.
INDEX = (
    "CREATE INDEX email_search ON emails_email USING gin (search_text gin_trgm_ops) WITH (gin_pending_list_limit = 512)"
)


class Migration(migrations.Migration):
    dependencies = [("emails", "0002_storage")]

    operations = [
        TrigramExtension(),
        migrations.RunSQL(INDEX, "DROP INDEX email_search"),
    ]
