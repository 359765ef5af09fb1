"""Storage of the busy tables: free space for updates within a page, and a vacuum that keeps up."""

from django.db import migrations

TUNE = """
ALTER TABLE emails_recipient SET (fillfactor = 85);
ALTER TABLE emails_email SET (fillfactor = 85);
ALTER TABLE emails_pending SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 5000);
"""
UNTUNE = """
ALTER TABLE emails_recipient RESET (fillfactor);
ALTER TABLE emails_email RESET (fillfactor);
ALTER TABLE emails_pending RESET (fillfactor, autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold,
    autovacuum_vacuum_cost_delay, autovacuum_analyze_scale_factor, autovacuum_analyze_threshold);
"""


class Migration(migrations.Migration):
    dependencies = [("emails", "0001_initial")]

    operations = [migrations.RunSQL(TUNE, UNTUNE)]
