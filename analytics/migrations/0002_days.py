"""Daily counters; longer keys; a vacuum that keeps up with the deltas."""

from django.db import migrations, models

import core.lib.model_fields

# Every delta is deleted once folded; the default would delay vacuum until a fifth of the table's largest size.
TUNE = """
ALTER TABLE analytics_tallydelta SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000,
    autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000);
"""
UNTUNE = """
ALTER TABLE analytics_tallydelta RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold,
    autovacuum_vacuum_cost_delay, autovacuum_analyze_scale_factor, autovacuum_analyze_threshold);
"""


class Migration(migrations.Migration):
    dependencies = [("analytics", "0001_initial")]

    operations = [
        migrations.AlterField("tally", "key", models.CharField(max_length=80)),
        migrations.AlterField("tallydelta", "key", models.CharField(max_length=80)),
        migrations.CreateModel(
            name="TallyDay",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("workspace_id", core.lib.model_fields.IdField("ws_", editable=False)),
                ("day", models.DateField()),
                ("key", models.CharField(max_length=80)),
                ("count", models.BigIntegerField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=["workspace_id", "day", "key"], name="one_tally_a_day"),
                ],
            },
        ),
        migrations.RunSQL(TUNE, UNTUNE),
    ]
