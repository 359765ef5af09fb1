"""Webhooks, their deliveries and their place in the feed, as of version 1.1.0."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
import core.lib.model_fields
import webhooks.formats
import webhooks.models
from django.db import migrations, models

# Space for updates within a page, and a vacuum that keeps up.
TUNE = """
ALTER TABLE webhooks_webhookdelivery SET (fillfactor = 85);
ALTER TABLE webhooks_pending SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 5000);
"""
BEGIN = "INSERT INTO webhooks_feedcursor (id, position) VALUES (1, 0)"


class Migration(migrations.Migration):
    replaces = [("webhooks", name) for name in """
        0001_initial 0002_storage 0003_pending_delivery 0004_format 0005_more_event_types 0006_feed_cursor
        0007_kinds_from_the_table 0008_streams 0009_headers
    """.split()]

    initial = True

    dependencies = [
        ('workspaces', '0001_squashed'),
    ]

    operations = [
        migrations.CreateModel(
            name='FeedCursor',
            fields=[
                ('id', models.PositiveSmallIntegerField(default=1, editable=False, primary_key=True, serialize=False)),
                ('position', models.BigIntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name='Webhook',
            fields=[
                ('id', core.lib.model_fields.IdField('wh_', editable=False, primary_key=True, serialize=False)),
                ('url', models.TextField(help_text='The URL that receives the events.')),
                ('events', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=webhooks.models.webhook_kind_choices, max_length=32), size=None, help_text='The types of events that the endpoint receives, with or without the prefix `email.`.')),
                ('streams', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=40), blank=True, db_default=[], default=list, size=None, help_text='The ids of streams: only events about their emails are delivered. Empty or absent: all of them.')),
                ('format', models.CharField(choices=webhooks.formats.format_choices, db_default='standard', default='standard', max_length=16, help_text='The format of the events: that of Postrider, or that of another service.')),
                ('sealed_headers', models.TextField(blank=True, db_default='', default='', editable=False)),
                ('active', models.BooleanField(default=True, help_text='Whether events are delivered.')),
                ('disabled_reason', models.TextField(blank=True, default='', help_text='The reason why Postrider disabled the webhook; null if it did not.')),
                ('pace', models.PositiveSmallIntegerField(default=4)),
                ('failing_since', models.DateTimeField(editable=False, null=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='webhooks', to='workspaces.workspace')),
            ],
            options={
                'ordering': ['-created_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='WebhookEvent',
            fields=[
                ('id', core.lib.model_fields.IdField('evt_', editable=False, primary_key=True, serialize=False)),
                ('workspace_id', core.lib.model_fields.IdField('ws_', editable=False)),
                ('body', models.TextField()),
                ('created_at', models.DateTimeField()),
            ],
            options={
                'indexes': [models.Index(fields=['workspace_id', 'created_at'], name='webhook_event_age')],
            },
        ),
        migrations.CreateModel(
            name='WebhookDelivery',
            fields=[
                ('id', core.lib.model_fields.IdField('whd_', editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=webhooks.models.webhook_kind_choices, max_length=32, help_text='The type of the event.')),
                ('is_test', models.BooleanField(default=False, help_text='Whether this is a test event.')),
                ('status', models.CharField(choices=[('pending', 'Pending'), ('succeeded', 'Succeeded'), ('exhausted', 'Exhausted'), ('discarded', 'Discarded')], max_length=16)),
                ('attempt_count', models.PositiveIntegerField(default=0, help_text='The number of attempts so far.')),
                ('attempts', models.JSONField(default=list)),
                ('status_code', models.PositiveSmallIntegerField(null=True, help_text='The HTTP status of the last response; null without one.')),
                ('error', models.CharField(blank=True, default='', max_length=32, help_text='The code of the last error; null after a success.')),
                ('created_at', models.DateTimeField()),
                ('succeeded_at', models.DateTimeField(null=True, help_text='The time of the successful attempt; null without one.')),
                ('workspace', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, to='workspaces.workspace')),
                ('webhook', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, to='webhooks.webhook')),
                ('event', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, to='webhooks.webhookevent')),
            ],
            options={
                'verbose_name_plural': 'webhook deliveries',
                'ordering': ['-created_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='WebhookSecret',
            fields=[
                ('id', core.lib.model_fields.IdField('whs_', editable=False, primary_key=True, serialize=False)),
                ('sealed_secret', models.TextField(editable=False)),
                ('expires_at', models.DateTimeField(editable=False, null=True)),
                ('webhook', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='secrets', to='webhooks.webhook')),
            ],
        ),
        migrations.CreateModel(
            name='PendingDelivery',
            fields=[
                ('delivery', models.OneToOneField(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, primary_key=True, related_name='pending', serialize=False, to='webhooks.webhookdelivery')),
                ('webhook_id', core.lib.model_fields.IdField('wh_', editable=False)),
                ('stage', models.PositiveSmallIntegerField(choices=[(0, 'Waiting'), (1, 'Ready'), (2, 'Leased')])),
                ('due_at', models.DateTimeField(help_text='time it became ready, or end of its wait or lease')),
                ('expires_at', models.DateTimeField(help_text='no attempt starts later')),
                ('fence', models.PositiveIntegerField(default=0, help_text='incremented by every claim')),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('by_hand', models.BooleanField(default=False, help_text='a test or a replay: attempted even if the endpoint is disabled')),
            ],
            options={
                'db_table': 'webhooks_pending',
                'indexes': [models.Index(fields=['stage', 'webhook_id', 'due_at'], name='webhook_pending_turn'), models.Index(condition=models.Q(('stage__in', [0, 2])), fields=['due_at'], name='webhook_pending_due'), models.Index(fields=['expires_at'], name='webhook_pending_expiry')],
            },
        ),
        migrations.AddIndex(
            model_name='webhook',
            index=models.Index(fields=['workspace', '-created_at', '-id'], name='webhook_newest'),
        ),
        migrations.AddIndex(
            model_name='webhookdelivery',
            index=models.Index(fields=['webhook', '-created_at', '-id'], name='delivery_newest'),
        ),
        migrations.AddIndex(
            model_name='webhookdelivery',
            index=models.Index(fields=['webhook', 'status', '-created_at', '-id'], name='delivery_by_status'),
        ),
        migrations.AddConstraint(
            model_name='webhookdelivery',
            constraint=models.UniqueConstraint(fields=('event', 'webhook'), name='one_delivery_an_event_and_webhook'),
        ),
        migrations.AddConstraint(
            model_name='webhooksecret',
            constraint=models.UniqueConstraint(condition=models.Q(('expires_at', None)), fields=('webhook',), name='one_newest_secret'),
        ),
        migrations.RunSQL(TUNE, migrations.RunSQL.noop),
        migrations.RunSQL(BEGIN, migrations.RunSQL.noop),
    ]
