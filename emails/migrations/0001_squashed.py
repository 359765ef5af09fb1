"""Emails, recipients, their queue and batches, as of version 1.1.0."""

import core.delivery.message.compose
import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
import django.db.models.functions.datetime
import django.db.models.functions.text
import core.lib.model_fields
from django.contrib.postgres.operations import TrigramExtension
from django.db import migrations, models

# Space for updates within a page, and a vacuum that keeps up.
TUNE = """
ALTER TABLE emails_recipient SET (fillfactor = 85);
ALTER TABLE emails_email SET (fillfactor = 85);
ALTER TABLE emails_hitcount SET (fillfactor = 85);
ALTER TABLE emails_pending SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 5000);
"""
# Trigrams of the search text (docs/decisions/0011), and statistics of how common they are (docs/decisions/0067). A short
# pending list (kB): the insert that flushes it delays an API request.
SEARCH = """
CREATE INDEX email_search ON emails_email USING gin (search_text gin_trgm_ops) WITH (gin_pending_list_limit = 512);
CREATE STATISTICS email_trigrams ON (show_trgm(search_text)) FROM emails_email;
"""
# Deleted with their recipient, even by raw SQL.
CASCADE = """
ALTER TABLE emails_hitcount ADD CONSTRAINT hitcount_recipient
    FOREIGN KEY (recipient_id) REFERENCES emails_recipient (id) ON DELETE CASCADE;
"""
# 46 µs where pglz takes 162, with a 10 % worse ratio, measured with an email of 13 kB.
COMPRESS = """
DO $$ BEGIN
    ALTER TABLE emails_content ALTER html SET COMPRESSION lz4, ALTER text SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN
    RAISE NOTICE 'This PostgreSQL has no lz4: texts are compressed with pglz.';
END $$
"""


class Migration(migrations.Migration):
    replaces = [("emails", name) for name in """
        0001_initial 0002_storage 0003_search 0004_engine 0005_hits 0006_provider_message_id 0007_finished
        0008_count_recipients 0009_hold 0010_search_statistics 0011_fast_compression 0012_plain_model_names
        0013_entrance 0014_placement 0015_past_sending_pause 0016_rare_events 0017_bounce_numbers 0018_batches
        0019_email_by_template 0020_test_emails 0021_test_email_index 0022_test_batches 0023_events_elsewhere
        0024_streams 0025_queue_by_rank 0026_held 0027_handed_to 0028_transport_use 0029_reply_domain
        0030_email_by_tag_and_stream 0031_recipient_by_address 0032_transport_listings
    """.split()]

    initial = True

    dependencies = [
        ('templates_app', '0001_squashed'),
        ('workspaces', '0001_squashed'),
    ]

    operations = [
        migrations.CreateModel(
            name='Content',
            fields=[
                ('id', core.lib.model_fields.IdField('con_', editable=False, primary_key=True, serialize=False)),
                ('html', models.TextField()),
                ('text', models.TextField()),
            ],
        ),
        migrations.CreateModel(
            name='PastSendingPause',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('since', models.DateTimeField(editable=False)),
                ('until', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
            ],
            options={
                'db_table': 'emails_past_hold',
            },
        ),
        migrations.CreateModel(
            name='Recipient',
            fields=[
                ('id', core.lib.model_fields.IdField('', editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('to', 'To'), ('cc', 'Cc'), ('bcc', 'Bcc')], max_length=3)),
                ('position', models.PositiveSmallIntegerField()),
                ('address', models.CharField(max_length=254)),
                ('state', models.CharField(choices=[('scheduled', 'Scheduled'), ('queued', 'Queued'), ('sent', 'Sent'), ('delivered', 'Delivered'), ('bounced', 'Bounced'), ('failed', 'Failed'), ('opened', 'Opened'), ('clicked', 'Clicked'), ('cancelled', 'Cancelled')], max_length=16)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('sent_at', models.DateTimeField(null=True)),
                ('delivered_at', models.DateTimeField(null=True)),
                ('bounced_at', models.DateTimeField(null=True)),
                ('opened_at', models.DateTimeField(null=True)),
                ('clicked_at', models.DateTimeField(null=True)),
                ('finished_at', models.DateTimeField(help_text='time it left the queue for the last time', null=True)),
                ('replied_at', models.DateTimeField(null=True)),
                ('reply_code', models.PositiveSmallIntegerField(null=True)),
                ('enhanced_code', models.CharField(max_length=12, null=True)),
                ('error_message', models.TextField(null=True)),
                ('reason', models.CharField(max_length=40, null=True, help_text='The classified reason of a bounce or failure, such as `unknown_user`; null without one.')),
                ('provider_message_id', models.CharField(max_length=255, null=True)),
                ('transport', models.CharField(max_length=30, null=True)),
            ],
            options={
                'ordering': ['position'],
            },
        ),
        migrations.CreateModel(
            name='TransportUse',
            fields=[
                ('name', models.CharField(max_length=30, primary_key=True, serialize=False)),
                ('drained_at', models.DateTimeField(null=True)),
                ('used_on', models.DateField(null=True)),
                ('used', models.PositiveIntegerField(db_default=0, default=0)),
                ('paused_notice_at', models.DateTimeField(null=True)),
                ('resumed_notice_at', models.DateTimeField(null=True)),
                ('listings', models.JSONField(null=True)),
            ],
            options={
                'db_table': 'emails_transport',
            },
        ),
        migrations.CreateModel(
            name='EmailBatch',
            fields=[
                ('id', core.lib.model_fields.IdField('bat_', editable=False, primary_key=True, serialize=False)),
                ('state', models.CharField(choices=[('open', 'Open'), ('paused', 'Paused'), ('cancelled', 'Cancelled')], default='open', max_length=16)),
                ('size', models.PositiveIntegerField(default=0, help_text='emails added so far')),
                ('is_test', models.BooleanField(db_default=False, default=False)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, to='workspaces.workspace')),
            ],
            options={
                'verbose_name_plural': 'email batches',
                'ordering': ['-created_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='Email',
            fields=[
                ('id', core.lib.model_fields.IdField('', editable=False, primary_key=True, serialize=False)),
                ('template_id', models.CharField(max_length=26, null=True)),
                ('template_data', models.TextField(null=True)),
                ('sender', models.TextField()),
                ('from_domain', models.CharField(max_length=253)),
                ('reply_to', models.TextField(null=True)),
                ('reply_domain', models.CharField(max_length=253, null=True)),
                ('to', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), size=None)),
                ('cc', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), size=None, help_text='The addresses in Cc. They receive the email and every recipient sees them.')),
                ('bcc', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), size=None, help_text='The addresses in Bcc. They receive the email and no other recipient sees them.')),
                ('subject', models.TextField()),
                ('search_text', models.TextField(help_text='to and subject in lower case')),
                ('tags', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), size=None, help_text='Names for filters and statistics, such as `welcome`. Recipients do not see them.')),
                ('metadata', models.JSONField(null=True)),
                ('headers', models.JSONField(default=dict)),
                ('is_test', models.BooleanField(db_default=False, default=False)),
                ('track_opens', models.BooleanField(default=True)),
                ('track_clicks', models.BooleanField(default=True)),
                ('stream', models.CharField(db_default='main', default='main', max_length=40)),
                ('entrance', models.CharField(choices=[('api', 'API'), ('smtp', 'SMTP'), ('dashboard', 'Dashboard'), ('compatibility', 'Compatibility')], db_default='api', max_length=16)),
                ('created_at', models.DateTimeField()),
                ('scheduled_for', models.DateTimeField(null=True)),
                ('status', models.CharField(choices=[('scheduled', 'Scheduled'), ('queued', 'Queued'), ('sent', 'Sent'), ('delivered', 'Delivered'), ('bounced', 'Bounced'), ('failed', 'Failed'), ('opened', 'Opened'), ('clicked', 'Clicked'), ('cancelled', 'Cancelled')], max_length=16)),
                ('sent_at', models.DateTimeField(null=True)),
                ('delivered_at', models.DateTimeField(null=True)),
                ('bounced_at', models.DateTimeField(null=True)),
                ('opened_at', models.DateTimeField(null=True)),
                ('clicked_at', models.DateTimeField(null=True)),
                ('error_message', models.TextField(null=True)),
                ('retry_count', models.PositiveSmallIntegerField(default=0)),
                ('finished_at', models.DateTimeField(help_text='time the last recipient finished; retention counts from here', null=True)),
                ('content', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, to='emails.content')),
                ('template_version', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, to='templates_app.templateversion')),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, to='workspaces.workspace')),
                ('batch', models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, to='emails.emailbatch')),
            ],
            options={
                'ordering': ['-created_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='QueueEntry',
            fields=[
                ('recipient', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, serialize=False, to='emails.recipient')),
                ('workspace_id', core.lib.model_fields.IdField('ws_', editable=False)),
                ('domain', models.CharField(help_text='domain of the recipient', max_length=253)),
                ('stage', models.PositiveSmallIntegerField(choices=[(0, 'Waiting'), (1, 'Ready'), (2, 'Leased'), (3, 'Scheduled'), (4, 'Held')])),
                ('rank', models.SmallIntegerField(db_default=1, default=1, help_text='priority of its stream')),
                ('due_at', models.DateTimeField(help_text='end of the wait or the lease; of a held entry, the time it was held')),
                ('since', models.DateTimeField(help_text='time it was first due, later by the time it was held; its age counts from here')),
                ('fence', models.PositiveIntegerField(default=0, help_text='incremented by every claim')),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('lost', models.PositiveSmallIntegerField(db_default=0, help_text='consecutive claims that ended without an outcome')),
                ('parked', models.PositiveSmallIntegerField(db_default=0, help_text='consecutive claims that were parked by a limit')),
                ('handed_to', models.CharField(help_text='the transport that has or may have the message (emails.sending.queue)', max_length=30, null=True)),
            ],
            options={
                'db_table': 'emails_pending',
            },
        ),
        migrations.AddField(
            model_name='recipient',
            name='email',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='recipients', to='emails.email'),
        ),
        migrations.CreateModel(
            name='HitCount',
            fields=[
                ('pk', models.CompositePrimaryKey('recipient_id', 'link', blank=True, editable=False, primary_key=True, serialize=False)),
                ('link', models.UUIDField(help_text='hash of the target URL; of an empty string for the pixel')),
                ('hits', models.PositiveIntegerField()),
                ('recipient', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, to='emails.recipient')),
            ],
        ),
        migrations.CreateModel(
            name='SendingPause',
            fields=[
                ('id', models.PositiveSmallIntegerField(default=1, editable=False, primary_key=True, serialize=False)),
                ('since', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
            ],
            options={
                'db_table': 'emails_hold',
                'constraints': [models.CheckConstraint(condition=models.Q(('id', 1)), name='one_hold')],
            },
        ),
        migrations.CreateModel(
            name='Acceptance',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(max_length=260)),
                ('operation', models.CharField(max_length=16)),
                ('fingerprint', models.CharField(help_text='SHA-256 of the body without the key', max_length=64)),
                ('answer', models.JSONField(null=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, to='workspaces.workspace')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('workspace', 'key'), name='one_acceptance_a_key')],
            },
        ),
        migrations.CreateModel(
            name='Attachment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('position', models.PositiveSmallIntegerField()),
                ('filename', models.CharField(max_length=255, help_text='The name of the file, without a path.')),
                ('content_type', models.CharField(max_length=255)),
                ('cid', models.CharField(help_text='Content-ID of an inline image', max_length=255, null=True)),
                ('placement', models.CharField(choices=[(core.delivery.message.compose.Placement['ATTACHED'], core.delivery.message.compose.Placement['ATTACHED']), (core.delivery.message.compose.Placement['ALTERNATIVE'], core.delivery.message.compose.Placement['ALTERNATIVE']), (core.delivery.message.compose.Placement['WHOLE'], core.delivery.message.compose.Placement['WHOLE'])], db_default=core.delivery.message.compose.Placement['ATTACHED'], max_length=16)),
                ('size', models.PositiveIntegerField(help_text='The size after decoding, in bytes.')),
                ('data', models.BinaryField()),
                ('content', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='attachments', to='emails.content')),
            ],
            options={
                'ordering': ['position'],
                'constraints': [models.UniqueConstraint(fields=('content', 'position'), name='one_attachment_a_position')],
            },
        ),
        migrations.AddIndex(
            model_name='emailbatch',
            index=models.Index(condition=models.Q(('state', 'open'), _negated=True), fields=['workspace', '-created_at', '-id'], name='batch_closed'),
        ),
        migrations.AddIndex(
            model_name='email',
            index=models.Index(fields=['workspace', '-created_at', '-id'], name='email_newest'),
        ),
        migrations.AddIndex(
            model_name='email',
            index=models.Index(fields=['workspace', 'status', '-created_at', '-id'], name='email_by_status'),
        ),
        migrations.AddIndex(
            model_name='email',
            index=models.Index(condition=models.Q(('batch', None), _negated=True), fields=['batch'], name='email_batch'),
        ),
        migrations.AddIndex(
            model_name='email',
            index=models.Index(condition=models.Q(('is_test', True)), fields=['workspace', '-created_at', '-id'], name='email_test'),
        ),
        migrations.AddIndex(
            model_name='email',
            index=models.Index(condition=models.Q(('template_id__isnull', False)), fields=['workspace', 'template_id', '-created_at'], name='email_by_template'),
        ),
        migrations.AddIndex(
            model_name='email',
            index=models.Index(condition=models.Q(('stream', 'main'), _negated=True), fields=['workspace', 'stream', '-created_at', '-id'], name='email_by_stream'),
        ),
        migrations.AddIndex(
            model_name='email',
            index=django.contrib.postgres.indexes.GinIndex(condition=models.Q(('tags', []), _negated=True), fields=['tags'], gin_pending_list_limit=512, name='email_by_tag'),
        ),
        migrations.AddIndex(
            model_name='queueentry',
            index=models.Index(condition=models.Q(('stage', 1)), fields=['workspace_id', 'rank', 'due_at'], name='pending_ready_by_rank'),
        ),
        migrations.AddIndex(
            model_name='queueentry',
            index=models.Index(condition=models.Q(('stage__in', [0, 2, 3])), fields=['due_at'], name='pending_due'),
        ),
        migrations.AddIndex(
            model_name='queueentry',
            index=models.Index(condition=models.Q(('stage', 4)), fields=['workspace_id', 'rank', 'due_at'], name='pending_held'),
        ),
        migrations.AddIndex(
            model_name='queueentry',
            index=models.Index(condition=models.Q(('stage', 2)), fields=['workspace_id'], name='pending_leased'),
        ),
        migrations.AddIndex(
            model_name='queueentry',
            index=models.Index(condition=models.Q(('stage', 0)), fields=['workspace_id', 'due_at'], name='pending_waiting'),
        ),
        migrations.AddIndex(
            model_name='queueentry',
            index=models.Index(condition=models.Q(('stage', 3)), fields=['workspace_id', 'since'], name='pending_scheduled'),
        ),
        migrations.AddIndex(
            model_name='recipient',
            index=models.Index(django.db.models.functions.text.Lower('address'), models.F('email'), name='recipient_by_address'),
        ),
        migrations.AddIndex(
            model_name='recipient',
            index=models.Index(condition=models.Q(('provider_message_id', None), _negated=True), fields=['provider_message_id'], name='recipient_of_provider'),
        ),
        TrigramExtension(),
        migrations.RunSQL(TUNE, migrations.RunSQL.noop),
        migrations.RunSQL(SEARCH, "DROP STATISTICS email_trigrams; DROP INDEX email_search"),
        migrations.RunSQL(CASCADE, migrations.RunSQL.noop),
        migrations.RunSQL(COMPRESS, migrations.RunSQL.noop),
    ]
