"""Sum the hourly counters that were folded before daily counters existed."""

from django.db import migrations

# The lock blocks folds: a fold in between would be counted twice.
FILL = """
LOCK TABLE analytics_tally IN SHARE ROW EXCLUSIVE MODE;
INSERT INTO analytics_tallyday (workspace_id, day, key, count)
SELECT workspace_id, (hour AT TIME ZONE 'UTC')::date, key, sum(count) FROM analytics_tally GROUP BY 1, 2, 3
ON CONFLICT (workspace_id, day, key) DO UPDATE SET count = EXCLUDED.count;
"""


class Migration(migrations.Migration):
    dependencies = [("analytics", "0002_days")]

    operations = [migrations.RunSQL(FILL, "TRUNCATE analytics_tallyday")]
