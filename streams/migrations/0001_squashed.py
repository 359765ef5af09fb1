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
                ('slug', models.CharField(editable=False, max_length=40, help_text='The id of the stream, as `stream` of an email.')),
                ('number', models.PositiveSmallIntegerField(default=0, editable=False)),
                ('name', models.CharField(max_length=100, help_text='The name of the stream. Recipients see it.')),
                ('description', models.CharField(blank=True, default='', max_length=500, help_text='What the stream is for. Recipients see it if the stream is public.')),
                ('kind', models.CharField(choices=streams.models.stream_kinds, default='transactional', max_length=16, help_text='`transactional`, or `bulk` for newsletters and announcements.')),
                ('unsubscribe', models.CharField(choices=streams.models.unsubscribe_choices, default='link', max_length=16, help_text='`link`: a link in the footer and List-Unsubscribe headers. `headers`: only the headers. `none`: neither, for transactional streams only.')),
                ('scope', models.CharField(choices=streams.models.stream_scopes, default='stream', max_length=16, help_text='Whether an unsubscribe or a complaint blocks this stream or the whole workspace.')),
                ('own_bounces', models.BooleanField(default=False, help_text='Whether a hard bounce blocks this stream only, instead of the workspace.')),
                ('ignores_unsubscribes', models.BooleanField(default=False, help_text='Whether the stream also reaches addresses that unsubscribed from the whole workspace. Bounces, complaints and manual suppressions always block.')),
                ('public', models.BooleanField(default=False, help_text='Whether the preference page of recipients lists the stream.')),
                ('priority', models.CharField(choices=streams.models.stream_priorities, default='normal', max_length=16, help_text="The order within the workspace's share of the queue.")),
                ('track_opens', models.BooleanField(default=True, help_text='Whether opens are tracked, unless an email says otherwise.')),
                ('track_clicks', models.BooleanField(default=True, help_text='Whether clicks are tracked, unless an email says otherwise.')),
                ('transport_route', models.CharField(blank=True, db_default='', default='', max_length=30, help_text="The operator's route of transports; absent for the usual one.")),
                ('archived_at', models.DateTimeField(editable=False, null=True, help_text='The time when the stream was archived; null if it accepts emails.')),
                ('paused_at', models.DateTimeField(editable=False, null=True, help_text='The time when the stream was paused; null if it is not.')),
                ('paused_reason', models.CharField(blank=True, default='', editable=False, max_length=500, help_text='Why the stream is paused; empty if it is not.')),
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
