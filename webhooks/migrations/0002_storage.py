"""Storage parameters of the busy tables: space for in-page updates and an eager vacuum."""

from django.db import migrations

TUNE = """
ALTER TABLE webhooks_webhookdelivery SET (fillfactor = 85);
ALTER TABLE webhooks_pending SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 5000);
"""
UNTUNE = """
ALTER TABLE webhooks_webhookdelivery RESET (fillfactor);
ALTER TABLE webhooks_pending RESET (fillfactor, autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold,
    autovacuum_vacuum_cost_delay, autovacuum_analyze_scale_factor, autovacuum_analyze_threshold);
"""


class Migration(migrations.Migration):
    dependencies = [("webhooks", "0001_initial")]

    operations = [migrations.RunSQL(TUNE, UNTUNE)]
