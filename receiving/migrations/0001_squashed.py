"""Received email, routes, blocks and forwards, as of version 1.1.0."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
import core.lib.model_fields
import receiving.models
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [("receiving", name) for name in """
        0001_initial 0002_content_of_webhooks 0003_forwards 0004_rereading
    """.split()]

    initial = True

    dependencies = [
        ('workspaces', '0001_squashed'),
    ]

    operations = [
        migrations.CreateModel(
            name='ReceivedContent',
            fields=[
                ('id', core.lib.model_fields.IdField('rcc_', editable=False, primary_key=True, serialize=False)),
                ('size', models.PositiveIntegerField(help_text='bytes')),
                ('data', models.BinaryField()),
            ],
            options={
                'db_table': 'receiving_content',
            },
        ),
        migrations.CreateModel(
            name='ReceivingUsage',
            fields=[
                ('workspace', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='receiving_usage', serialize=False, to='workspaces.workspace')),
                ('stored_bytes', models.BigIntegerField(default=0)),
                ('day', models.DateField()),
                ('messages', models.PositiveIntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name='SharedAddress',
            fields=[
                ('workspace', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='shared_address', serialize=False, to='workspaces.workspace')),
                ('local_part', models.CharField(max_length=12, unique=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
            ],
        ),
        migrations.CreateModel(
            name='Message',
            fields=[
                ('id', core.lib.model_fields.IdField('msg_', editable=False, primary_key=True, serialize=False)),
                ('content_id', core.lib.model_fields.IdField('rcc_', editable=False)),
                ('sha256', models.BinaryField(max_length=32)),
                ('size', models.PositiveIntegerField(help_text='bytes')),
                ('envelope_from', models.CharField(max_length=320)),
                ('remote_ip', models.GenericIPAddressField(null=True)),
                ('helo', models.CharField(blank=True, max_length=255)),
                ('tls', models.CharField(blank=True, max_length=16)),
                ('trace', models.TextField()),
                ('is_test', models.BooleanField(default=False)),
                ('workspace_id', core.lib.model_fields.IdField('ws_', editable=False)),
                ('received_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('due_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('fence', models.PositiveIntegerField(db_default=0, editable=False)),
                ('attempts', models.PositiveSmallIntegerField(db_default=0, editable=False)),
                ('read_at', models.DateTimeField(editable=False, null=True)),
                ('reread_at', models.DateTimeField(editable=False, null=True)),
                ('subject', models.TextField(blank=True, default='')),
                ('sender', models.CharField(blank=True, default='', max_length=320)),
                ('addresses', models.JSONField(default=dict, help_text='from, to, cc, replyTo')),
                ('date', models.DateTimeField(null=True)),
                ('message_id', models.TextField(blank=True, default='')),
                ('in_reply_to', models.TextField(blank=True, default='')),
                ('references', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), default=list, size=None)),
                ('text', models.TextField(blank=True, default='')),
                ('text_generated', models.BooleanField(default=False)),
                ('reply_text', models.TextField(null=True)),
                ('html', models.TextField(blank=True, default='')),
                ('truncated', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=16), default=list, size=None)),
                ('headers', models.JSONField(default=list)),
                ('attachments', models.JSONField(default=list)),
                ('automatic', models.CharField(choices=receiving.models.automatic_kinds, default='no', max_length=16)),
                ('parse_errors', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), default=list, size=None)),
                ('authentication', models.JSONField(null=True)),
                ('spam', models.JSONField(null=True)),
            ],
            options={
                'ordering': ['-received_at', '-id'],
                'indexes': [models.Index(condition=models.Q(('read_at', None)), fields=['due_at'], name='message_due'), models.Index(condition=models.Q(('read_at', None), ('size__lte', 262144)), fields=['workspace_id', 'due_at'], name='message_small'), models.Index(condition=models.Q(('read_at', None), ('size__gt', 262144)), fields=['workspace_id', 'due_at'], name='message_large'), models.Index(condition=models.Q(('attempts__gte', 2), ('read_at', None)), fields=['due_at'], name='message_alone'), models.Index(fields=['sha256', 'received_at'], name='message_repeated')],
            },
        ),
        migrations.CreateModel(
            name='ReceivedEmail',
            fields=[
                ('id', core.lib.model_fields.IdField('inb_', editable=False, primary_key=True, serialize=False)),
                ('route_id', core.lib.model_fields.IdField('rt_', editable=False, null=True)),
                ('recipient', models.CharField(max_length=320)),
                ('tag', models.CharField(blank=True, default='', max_length=64)),
                ('status', models.CharField(choices=receiving.models.received_statuses, default='stored', max_length=16)),
                ('blocked_reason', models.CharField(blank=True, default='', max_length=32)),
                ('sender', models.CharField(blank=True, default='', max_length=320)),
                ('subject', models.TextField(blank=True, default='')),
                ('size', models.PositiveIntegerField(help_text='bytes')),
                ('is_test', models.BooleanField(default=False)),
                ('reply_email_id', core.lib.model_fields.IdField('', editable=False, null=True)),
                ('reply_recipient_id', core.lib.model_fields.IdField('', editable=False, null=True)),
                ('reply_address', models.CharField(blank=True, default='', max_length=254)),
                ('reply_matched_by', models.CharField(blank=True, choices=[('address', 'Address'), ('message_id', 'Message Id')], default='', max_length=16)),
                ('is_from_recipient', models.BooleanField(default=False)),
                ('inlines_files', models.BooleanField(db_default=False, default=False)),
                ('includes_raw', models.BooleanField(db_default=False, default=False)),
                ('store_days', models.PositiveSmallIntegerField()),
                ('received_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('expires_at', models.DateTimeField()),
                ('processed_at', models.DateTimeField(null=True)),
                ('event_id', core.lib.model_fields.IdField('evt_', editable=False, null=True)),
                ('unread_event_id', core.lib.model_fields.IdField('evt_', editable=False, null=True)),
                ('message', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='emails', to='receiving.message')),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='received_emails', to='workspaces.workspace')),
            ],
            options={
                'ordering': ['-received_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='Forward',
            fields=[
                ('id', core.lib.model_fields.IdField('fwd_', editable=False, primary_key=True, serialize=False)),
                ('route_id', core.lib.model_fields.IdField('rt_', editable=False, null=True)),
                ('address', models.CharField(max_length=254, help_text='The address.')),
                ('sent_email_id', core.lib.model_fields.IdField('', editable=False, null=True, help_text='The id of the sent email; null if it was not sent.')),
                ('error', models.CharField(blank=True, default='', max_length=40, help_text='The code of the problem of sending it, `own_domain` or `daily_limit`; null if it was sent.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False, help_text='The time when the forward was made.')),
                ('email', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='forwards', to='receiving.receivedemail')),
            ],
            options={
                'ordering': ['created_at', 'id'],
            },
        ),
        migrations.CreateModel(
            name='SenderBlock',
            fields=[
                ('id', core.lib.model_fields.IdField('blk_', editable=False, primary_key=True, serialize=False)),
                ('sender', models.CharField(max_length=254, help_text='The address or the domain, in lower case.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='sender_blocks', to='workspaces.workspace')),
            ],
            options={
                'ordering': ['-created_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='ForwardTarget',
            fields=[
                ('id', core.lib.model_fields.IdField('fwt_', editable=False, primary_key=True, serialize=False)),
                ('address', models.CharField(max_length=254)),
                ('link_sent_at', models.DateTimeField(editable=False, null=True)),
                ('confirmed_at', models.DateTimeField(editable=False, null=True)),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='forward_targets', to='workspaces.workspace')),
            ],
            options={
                'indexes': [models.Index(fields=['address'], name='forward_target_address')],
                'constraints': [models.UniqueConstraint(fields=('workspace', 'address'), name='one_target_an_address')],
            },
        ),
        migrations.CreateModel(
            name='InboundRoute',
            fields=[
                ('id', core.lib.model_fields.IdField('rt_', editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=100, help_text='The name of the route.')),
                ('domain', models.CharField(max_length=253, help_text='A receiving domain of the workspace, or `shared` for its address at the domain of the service.')),
                ('match', models.CharField(max_length=64, help_text='The local parts that match, in lower case: literals, `?` for one character and `*` for any, such as `support*`.')),
                ('literals', models.PositiveSmallIntegerField(editable=False)),
                ('priority', models.PositiveSmallIntegerField(default=100, help_text='Routes with a lower number come first; then those with more literal characters; then older ones.')),
                ('action', models.CharField(choices=receiving.models.route_actions, default='deliver', max_length=16, help_text='`deliver`; `reject` refuses the recipient; `discard` accepts the message and keeps nothing.')),
                ('webhook_ids', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=26), blank=True, default=list, size=None, help_text='The webhooks that get `received`; empty for all that subscribe to it.')),
                ('forward_to', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=254), blank=True, db_default=[], default=list, size=None, help_text='The addresses to which email is forwarded, at most 5. Each one has to confirm it first: with `forward_not_confirmed`, a link was sent to it.')),
                ('attachments', models.CharField(choices=receiving.models.attachment_forms, default='link', max_length=16, help_text='Whether attachments are links or part of the body, in formats that allow both.')),
                ('include_raw', models.BooleanField(default=False, help_text='Whether the source of the message is part of the body, in formats that have it.')),
                ('require_authenticated', models.BooleanField(default=False, help_text='Whether a message is blocked unless it is proven to come from the domain of its From.')),
                ('spam_above', models.FloatField(blank=True, null=True, help_text='The lowest spam score with which a message is blocked; null for none.')),
                ('replies_only', models.BooleanField(default=False, help_text='Whether a message is blocked unless it answers an email of the workspace.')),
                ('store_days', models.PositiveSmallIntegerField(blank=True, null=True, help_text='The days for which messages are kept; null for as long as the plan allows, 0 until they are delivered.')),
                ('active', models.BooleanField(default=True, help_text='Whether the route is used.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False, help_text='The time when the route was created.')),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='routes', to='workspaces.workspace')),
            ],
            options={
                'ordering': ['priority', '-literals', 'created_at', 'id'],
                'indexes': [models.Index(fields=['workspace', 'domain'], name='route_of_domain')],
            },
        ),
        migrations.AddIndex(
            model_name='receivedemail',
            index=models.Index(fields=['workspace', '-received_at', '-id'], name='received_newest'),
        ),
        migrations.AddIndex(
            model_name='receivedemail',
            index=models.Index(fields=['workspace', 'expires_at'], name='received_expiry'),
        ),
        migrations.AddIndex(
            model_name='receivedemail',
            index=models.Index(condition=models.Q(('reply_email_id', None), _negated=True), fields=['reply_email_id'], name='received_reply_to'),
        ),
        migrations.AddIndex(
            model_name='receivedemail',
            index=models.Index(condition=models.Q(('reply_recipient_id', None), _negated=True), fields=['reply_recipient_id'], name='received_reply_of'),
        ),
        migrations.AddIndex(
            model_name='receivedemail',
            index=models.Index(condition=models.Q(('store_days', 0), models.Q(('processed_at', None), _negated=True)), fields=['processed_at'], name='received_not_kept'),
        ),
        migrations.AddIndex(
            model_name='forward',
            index=models.Index(fields=['route_id', 'created_at'], name='forward_of_route'),
        ),
        migrations.AddConstraint(
            model_name='senderblock',
            constraint=models.UniqueConstraint(fields=('workspace', 'sender'), name='one_block_a_sender'),
        ),
        # Not compressed, so that a range is read without the rest.
        migrations.RunSQL(
            "ALTER TABLE receiving_content ALTER COLUMN data SET STORAGE EXTERNAL", migrations.RunSQL.noop
        ),
    ]
