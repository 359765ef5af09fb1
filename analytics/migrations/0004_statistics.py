"""Make plans for deltas independent of ANALYZE: the rows of this table come and go."""

from django.db import migrations

# After an ANALYZE that saw the deltas of only one workspace, PostgreSQL chose a sequential scan of a million rows:
# 86 ms instead of 0.3. Without statistics it expects 1 row in 200 and uses the index. Repeating the type drops the
# statistics gathered so far and rewrites nothing.
FORGET = """
ALTER TABLE analytics_tallydelta ALTER COLUMN workspace_id TYPE uuid, ALTER COLUMN workspace_id SET STATISTICS 0;
"""
GATHER = "ALTER TABLE analytics_tallydelta ALTER COLUMN workspace_id SET STATISTICS -1"


class Migration(migrations.Migration):
    dependencies = [("analytics", "0003_fill_days")]

    operations = [migrations.RunSQL(FORGET, GATHER)]
