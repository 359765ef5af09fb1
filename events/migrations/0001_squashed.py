"""The log of events and the feed, as of version 1.1.0."""

from typing import Any

import django.contrib.postgres.fields
import django.db.models.deletion
import events.kinds
import core.lib.model_fields
from django.db import migrations, models

from events.former_sequencer import take_over_feed



def take_over(apps: Any, schema_editor: Any) -> None:
    take_over_feed()


class Migration(migrations.Migration):
    replaces = [("events", name) for name in """
        0001_initial 0002_log 0003_indexes 0004_former_events 0005_failures
    """.split()]

    initial = True

    dependencies = [
        ('emails', '0001_squashed'),
    ]

    operations = [
        migrations.CreateModel(
            name='FeedHead',
            fields=[
                ('id', models.PositiveSmallIntegerField(default=1, editable=False, primary_key=True, serialize=False)),
                ('position', models.BigIntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name='FeedProgress',
            fields=[
                ('source', models.CharField(max_length=10, primary_key=True, serialize=False)),
                ('last', models.BigIntegerField(default=0)),
                ('gaps', models.TextField(default='{}')),
                ('new_gaps', models.TextField(default='{}')),
                ('writers', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), default=list, size=None)),
            ],
        ),
        migrations.CreateModel(
            name='FeedEntry',
            fields=[
                ('pk', models.CompositePrimaryKey('workspace_id', 'position', blank=True, editable=False, primary_key=True, serialize=False)),
                ('workspace_id', core.lib.model_fields.IdField('ws_', editable=False)),
                ('position', models.BigIntegerField()),
                ('source', models.CharField(max_length=10)),
                ('number', models.BigIntegerField()),
                ('recorded_at', models.DateTimeField()),
            ],
            options={
                'indexes': [models.Index(fields=['position'], name='feed_position')],
            },
        ),
        migrations.CreateModel(
            name='Event',
            fields=[
                ('number', models.BigAutoField(primary_key=True, serialize=False)),
                ('id', core.lib.model_fields.IdField('evt_', editable=False, help_text='The id of the event, which webhooks send as well.')),
                ('workspace_id', core.lib.model_fields.IdField('ws_', editable=False, null=True)),
                ('kind', models.CharField(choices=events.kinds.kind_choices, max_length=32)),
                ('payload', models.JSONField()),
                ('status', models.CharField(max_length=10, null=True)),
                ('created_at', models.DateTimeField()),
                ('email', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='events', to='emails.email')),
                ('recipient', models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, to='emails.recipient')),
            ],
            options={
                'db_table': 'emails_event',
                'ordering': ['number'],
                'indexes': [models.Index(fields=['email', 'number'], name='event_timeline'), models.Index(condition=models.Q(('kind__in', ('bounced', 'failed', 'deferred', 'unsubscribed', 'complained', 'cancelled'))), fields=['kind', 'email'], name='event_rare'), models.Index(condition=models.Q(('kind__in', ('bounced', 'failed', 'deferred'))), fields=['workspace_id', 'kind', 'created_at'], name='event_failure'), models.Index(core.lib.model_fields.IdNumber('id'), condition=models.Q(('kind__in', ('bounced', 'failed', 'deferred', 'unsubscribed', 'complained', 'cancelled'))), name='event_bounce_number'), models.Index(condition=models.Q(('email', None)), fields=['workspace_id', 'created_at'], name='event_workspace_age')],
            },
        ),
        # The rows of its progress.
        migrations.RunPython(take_over, migrations.RunPython.noop),
    ]
