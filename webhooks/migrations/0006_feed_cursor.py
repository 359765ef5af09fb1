"""The place up to which deliveries have been made from the feed of events."""

from django.db import migrations, models

# Events before it were published by the transactions that recorded them.
BEGIN_AT_HEAD = """
INSERT INTO webhooks_feedcursor (id, position)
SELECT 1, coalesce((SELECT position FROM events_feedhead WHERE id = 1), 0)
"""


class Migration(migrations.Migration):
    dependencies = [("webhooks", "0005_more_event_types"), ("events", "0004_former_events")]

    operations = [
        migrations.CreateModel(
            name="FeedCursor",
            fields=[
                ("id", models.PositiveSmallIntegerField(default=1, editable=False, primary_key=True, serialize=False)),
                ("position", models.BigIntegerField(default=0)),
            ],
        ),
        migrations.RunSQL(BEGIN_AT_HEAD, migrations.RunSQL.noop),
    ]
