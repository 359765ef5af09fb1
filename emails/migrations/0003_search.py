"""The index behind search: trigrams of what is searched, beside the workspace (docs/decisions/0011)."""

from django.contrib.postgres.operations import BtreeGinExtension, TrigramExtension
from django.db import migrations

INDEX = "CREATE INDEX email_search ON emails_email USING gin (workspace_id, search_text gin_trgm_ops)"


class Migration(migrations.Migration):
    dependencies = [("emails", "0002_storage")]

    operations = [
        TrigramExtension(),
        BtreeGinExtension(),
        migrations.RunSQL(INDEX, "DROP INDEX email_search"),
    ]
