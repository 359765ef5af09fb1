"""Idempotent management requests and leases of configurations, as of version 1.1.0."""

import django.db.models.functions.datetime
import core.lib.model_fields
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [("provisioning", name) for name in """
        0001_initial 0002_responses 0003_configuration_leases
    """.split()]

    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name='ConfigurationLease',
            fields=[
                ('subject', models.CharField(help_text='the id of a workspace, or `workspaces`', max_length=40, primary_key=True, serialize=False)),
                ('token', models.CharField(help_text='chosen by the run', max_length=100)),
                ('expires_at', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='ManagementKey',
            fields=[
                ('name', models.CharField(max_length=100)),
                ('secret_hash', models.CharField(editable=False, max_length=100)),
                ('last_four', models.CharField(editable=False, max_length=4, help_text='The last four characters of the key.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('revoked_at', models.DateTimeField(blank=True, editable=False, null=True, help_text='The time at which it was revoked; null if it was not.')),
                ('last_used_at', models.DateTimeField(blank=True, editable=False, null=True, help_text='The time of its last use, to the minute; null if it was never used.')),
                ('id', core.lib.model_fields.IdField('mkey_', editable=False, primary_key=True, serialize=False)),
                ('group', models.CharField(blank=True, max_length=100)),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='ManagementResponse',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('caller', models.CharField(help_text='the id of the management key or API key of the request', max_length=40)),
                ('key', models.CharField(max_length=255)),
                ('operation', models.CharField(max_length=16)),
                ('fingerprint', models.CharField(max_length=64)),
                ('sealed_body', models.TextField(db_default='', editable=False)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
            ],
            options={
                'indexes': [models.Index(fields=['created_at'], name='management_response_age')],
                'constraints': [models.UniqueConstraint(fields=('caller', 'key'), name='one_management_response_a_key')],
            },
        ),
    ]
