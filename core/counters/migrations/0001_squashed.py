"""Counters, as of version 1.1.0."""

import django.contrib.postgres.fields
import core.lib.model_fields
from django.db import migrations, models

# Every delta is deleted once folded; the default would delay vacuum until a fifth of the table's largest size. Without
# statistics, plans do not depend on ANALYZE: the rows of this table come and go.
TUNE = """
ALTER TABLE analytics_tallydelta SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000,
    autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000);
ALTER TABLE analytics_tallydelta ALTER COLUMN workspace_id SET STATISTICS 0;
"""


class Migration(migrations.Migration):
    replaces = [("counters", name) for name in """
        0001_initial
    """.split()]

    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name='CounterDelta',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('workspace_id', core.lib.model_fields.IdField('ws_', editable=False)),
                ('hour', models.DateTimeField()),
                ('key', models.CharField(max_length=80)),
                ('change', models.BigIntegerField()),
                ('slices', django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), db_default=[], default=list, size=None)),
            ],
            options={
                'db_table': 'analytics_tallydelta',
                'indexes': [models.Index(fields=['workspace_id', 'hour'], name='delta_workspace')],
            },
        ),
        migrations.CreateModel(
            name='DailyCounter',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('workspace_id', core.lib.model_fields.IdField('ws_', editable=False)),
                ('day', models.DateField()),
                ('key', models.CharField(max_length=80)),
                ('count', models.BigIntegerField()),
            ],
            options={
                'db_table': 'analytics_tallyday',
                'constraints': [models.UniqueConstraint(fields=('workspace_id', 'day', 'key'), name='one_tally_a_day')],
            },
        ),
        migrations.CreateModel(
            name='HourlyCounter',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('workspace_id', core.lib.model_fields.IdField('ws_', editable=False)),
                ('hour', models.DateTimeField()),
                ('key', models.CharField(max_length=80)),
                ('count', models.BigIntegerField()),
            ],
            options={
                'db_table': 'analytics_tally',
                'constraints': [models.UniqueConstraint(fields=('workspace_id', 'hour', 'key'), name='one_tally_an_hour')],
            },
        ),
        migrations.CreateModel(
            name='SliceCounter',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slice', models.UUIDField()),
                ('day', models.DateField()),
                ('key', models.CharField(max_length=80)),
                ('count', models.BigIntegerField()),
            ],
            options={
                'db_table': 'analytics_slice',
                'constraints': [models.UniqueConstraint(fields=('slice', 'day', 'key'), name='one_count_a_slice_and_day')],
            },
        ),
        migrations.RunSQL(TUNE, migrations.RunSQL.noop),
    ]
