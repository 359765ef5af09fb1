"""Hit counts per link. The rows are deleted with their recipient, even by raw SQL."""

import django.db.models.deletion
from django.db import migrations, models

CASCADE = """
ALTER TABLE emails_hitcount SET (fillfactor = 85);
ALTER TABLE emails_hitcount ADD CONSTRAINT hitcount_recipient
    FOREIGN KEY (recipient_id) REFERENCES emails_recipient (id) ON DELETE CASCADE;
"""


class Migration(migrations.Migration):
    dependencies = [("emails", "0004_engine")]

    operations = [
        migrations.CreateModel(
            name="HitCount",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "recipient_id", "link", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("link", models.UUIDField(help_text="hash of the target URL; of an empty string for the pixel")),
                ("hits", models.PositiveIntegerField()),
                (
                    "recipient",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="emails.recipient",
                    ),
                ),
            ],
        ),
        migrations.RunSQL(CASCADE, migrations.RunSQL.noop),
    ]
