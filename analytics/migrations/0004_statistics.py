"""Plan for any workspace's deltas alike, whatever ANALYZE saw of a table whose rows come and go."""

from django.db import migrations

# Once it saw the deltas of one workspace alone, PostgreSQL took all for that one's, and read a million of others' from
# end to end: 86 ms instead of 0.3. Without statistics it expects a two-hundredth, and goes by the index. Naming
# the type again drops those that were gathered before; nothing is rewritten.
FORGET = """
ALTER TABLE analytics_tallydelta ALTER COLUMN workspace_id TYPE uuid, ALTER COLUMN workspace_id SET STATISTICS 0;
"""
GATHER = "ALTER TABLE analytics_tallydelta ALTER COLUMN workspace_id SET STATISTICS -1"


class Migration(migrations.Migration):
    dependencies = [("analytics", "0003_fill_days")]

    operations = [migrations.RunSQL(FORGET, GATHER)]
