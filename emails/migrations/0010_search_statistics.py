"""Statistics of the trigrams in the search text: which of them are common (docs/decisions/0067)."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("emails", "0009_hold")]

    operations = [
        migrations.RunSQL(
            "CREATE STATISTICS email_trigrams ON (show_trgm(search_text)) FROM emails_email",
            "DROP STATISTICS email_trigrams",
        ),
    ]
