"""Streams, as of version 1.1.0."""

import django.db.models.deletion
import django.db.models.functions.datetime
import core.lib.model_fields
import streams.models
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [("streams", name) for name in """
        0001_initial 0002_pause_code 0003_transport_route
    """.split()]

    initial = True

    dependencies = [
        ('workspaces', '0001_squashed'),
    ]

    operations = [
        migrations.CreateModel(
            name='Stream',
            fields=[
                ('id', core.lib.model_fields.IdField('str_', editable=False, primary_key=True, serialize=False)),
                ('slug', models.CharField(editable=False, max_length=40)),
                ('number', models.PositiveSmallIntegerField(default=0, editable=False)),
                ('name', models.CharField(max_length=100)),
                ('description', models.CharField(blank=True, default='', max_length=500)),
                ('kind', models.CharField(choices=streams.models.stream_kinds, default='transactional', max_length=16)),
                ('unsubscribe', models.CharField(choices=streams.models.unsubscribe_choices, default='link', max_length=16)),
                ('scope', models.CharField(choices=streams.models.stream_scopes, default='stream', max_length=16)),
                ('own_bounces', models.BooleanField(default=False)),
                ('ignores_unsubscribes', models.BooleanField(default=False)),
                ('public', models.BooleanField(default=False)),
                ('priority', models.CharField(choices=streams.models.stream_priorities, default='normal', max_length=16)),
                ('track_opens', models.BooleanField(default=True)),
                ('track_clicks', models.BooleanField(default=True)),
                ('transport_route', models.CharField(blank=True, db_default='', default='', max_length=30)),
                ('archived_at', models.DateTimeField(editable=False, null=True)),
                ('paused_at', models.DateTimeField(editable=False, null=True)),
                ('paused_reason', models.CharField(blank=True, default='', editable=False, max_length=500)),
                ('paused_code', models.JSONField(editable=False, null=True)),
                ('judged_from', models.DateTimeField(editable=False, null=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='streams', to='workspaces.workspace')),
            ],
            options={
                'ordering': ['created_at', 'id'],
                'constraints': [models.UniqueConstraint(fields=('workspace', 'slug'), name='one_slug_a_workspace')],
            },
        ),
    ]
