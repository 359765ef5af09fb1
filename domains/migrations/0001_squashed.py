"""Domains, their checks and keys, tracking hosts and receiving, as of version 1.1.0."""

import django.db.models.deletion
import django.db.models.functions.datetime
import core.lib.model_fields
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [("domains", name) for name in """
        0001_initial 0002_verification 0003_tls_policy 0004_finding_codes 0005_tracking_defaults
        0006_tracking_hosts 0007_spf_passing 0008_receiving
    """.split()]

    initial = True

    dependencies = [
        ('workspaces', '0001_squashed'),
    ]

    operations = [
        migrations.CreateModel(
            name='Domain',
            fields=[
                ('id', core.lib.model_fields.IdField('dom_', editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=253)),
                ('status', models.CharField(choices=[('pending', 'Pending'), ('verified', 'Verified'), ('failed', 'Failed'), ('temporary_failure', 'Temporary Failure')], default='pending', max_length=20, help_text='`verified` once DKIM and SPF are found; `temporary_failure` if DNS did not answer.')),
                ('tls', models.CharField(choices=[('opportunistic', 'Opportunistic'), ('required', 'Required')], db_default='opportunistic', max_length=16, help_text='`required`: emails of the domain leave only over TLS with a valid certificate. `opportunistic`: TLS is used where a host offers it.')),
                ('open_tracking', models.BooleanField(db_default=True, help_text='Whether opens are tracked with a pixel, if the stream has it so; the option of an email takes precedence.')),
                ('click_tracking', models.BooleanField(db_default=True, help_text='Whether clicks are tracked by rewriting links, if the stream has it so; the option of an email takes precedence.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('verified_at', models.DateTimeField(editable=False, null=True, help_text='The time of the verification; null before it.')),
                ('last_checked_at', models.DateTimeField(editable=False, null=True, help_text='The time of the last check; null before the first.')),
                ('findings', models.JSONField(db_default=models.Value({}, models.JSONField()), default=dict, editable=False)),
                ('finding_codes', models.JSONField(editable=False, null=True)),
                ('spf_passing', models.TextField(editable=False, null=True)),
                ('missing_since', models.DateTimeField(editable=False, null=True)),
                ('absences', models.PositiveSmallIntegerField(db_default=0, editable=False)),
                ('return_path_seen_at', models.DateTimeField(editable=False, null=True)),
                ('watched_since', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('check_due_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('checking_until', models.DateTimeField(editable=False, null=True)),
                ('checks_begun', models.PositiveIntegerField(db_default=0, editable=False)),
                ('checks_recorded', models.PositiveIntegerField(db_default=0, editable=False)),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='domains', to='workspaces.workspace')),
            ],
            options={
                'ordering': ['-created_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='DkimKey',
            fields=[
                ('id', core.lib.model_fields.IdField('dkim_', editable=False, primary_key=True, serialize=False)),
                ('selector', models.CharField(max_length=63)),
                ('public_key', models.TextField(help_text='DER, base64: the p= of the DNS record')),
                ('sealed_private_key', models.TextField(editable=False)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('seen_at', models.DateTimeField(editable=False, null=True)),
                ('retired_at', models.DateTimeField(editable=False, null=True)),
                ('domain', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='dkim_keys', to='domains.domain')),
            ],
        ),
        migrations.CreateModel(
            name='ReceivingDomain',
            fields=[
                ('id', core.lib.model_fields.IdField('rd_', editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=253)),
                ('status', models.CharField(choices=[('pending', 'Pending'), ('active', 'Active'), ('failed', 'Failed')], db_default='pending', max_length=16)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('proven_at', models.DateTimeField(editable=False, null=True)),
                ('missing_since', models.DateTimeField(editable=False, null=True)),
                ('absences', models.PositiveSmallIntegerField(db_default=0, editable=False)),
                ('findings', models.JSONField(db_default=models.Value({}, models.JSONField()), editable=False)),
                ('finding_codes', models.JSONField(editable=False, null=True)),
                ('domain', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='receiving_domain', to='domains.domain')),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='receiving_domains', to='workspaces.workspace')),
            ],
        ),
        migrations.CreateModel(
            name='TrackingHost',
            fields=[
                ('id', core.lib.model_fields.IdField('th_', editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=253)),
                ('status', models.CharField(choices=[('pending', 'Pending'), ('active', 'Active'), ('failed', 'Failed')], db_default='pending', max_length=16)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('seen_at', models.DateTimeField(editable=False, null=True)),
                ('proven_at', models.DateTimeField(editable=False, null=True)),
                ('retired_at', models.DateTimeField(editable=False, null=True)),
                ('findings', models.JSONField(db_default=models.Value({}, models.JSONField()), editable=False)),
                ('finding_codes', models.JSONField(editable=False, null=True)),
                ('domain', models.OneToOneField(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='tracking_host', to='domains.domain')),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tracking_hosts', to='workspaces.workspace')),
            ],
        ),
        migrations.AddIndex(
            model_name='domain',
            index=models.Index(fields=['check_due_at'], name='domain_check_due'),
        ),
        migrations.AddConstraint(
            model_name='domain',
            constraint=models.UniqueConstraint(fields=('workspace', 'name'), name='one_domain_a_workspace'),
        ),
        migrations.AddConstraint(
            model_name='dkimkey',
            constraint=models.UniqueConstraint(fields=('domain', 'selector'), name='one_key_a_selector'),
        ),
        migrations.AddConstraint(
            model_name='receivingdomain',
            constraint=models.UniqueConstraint(condition=models.Q(('proven_at__isnull', False)), fields=('name',), name='one_workspace_receives_a_domain'),
        ),
        migrations.AddConstraint(
            model_name='trackinghost',
            constraint=models.UniqueConstraint(condition=models.Q(('proven_at__isnull', False), ('retired_at__isnull', True)), fields=('name',), name='one_workspace_a_tracking_host'),
        ),
    ]
