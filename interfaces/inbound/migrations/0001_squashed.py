"""Reports of receivers and their queue, as of version 1.1.0."""

import django.db.models.functions.datetime
import core.lib.model_fields
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [("inbound", name) for name in """
        0001_initial 0002_transport
    """.split()]

    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name='MailReport',
            fields=[
                ('number', models.BigAutoField(primary_key=True, serialize=False)),
                ('received_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('due_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('attempts', models.PositiveSmallIntegerField(db_default=0, editable=False)),
                ('processed_at', models.DateTimeField(editable=False, null=True)),
                ('verdict', models.CharField(blank=True, choices=[('recorded', 'Recorded'), ('repeated', 'duplicate'), ('not_ours', 'unknown recipient'), ('somebody_else', 'names another recipient'), ('says_nothing', 'no delivery status'), ('for_people', 'needs manual review'), ('poison', 'could not be processed')], default='', editable=False, max_length=16)),
                ('recipient_id', core.lib.model_fields.IdField('', editable=False, null=True)),
                ('sender', models.CharField(max_length=320)),
                ('peer', models.CharField(max_length=64)),
                ('source', models.BinaryField(help_text='first 256 KiB of the message')),
            ],
            options={
                'ordering': ['-number'],
                'abstract': False,
                'indexes': [models.Index(condition=models.Q(('processed_at', None)), fields=['due_at'], name='mailreport_due'), models.Index(condition=models.Q(('processed_at', None), _negated=True), fields=['processed_at'], name='mailreport_done'), models.Index(condition=models.Q(('recipient_id', None)), fields=['received_at'], name='mailreport_for_people')],
            },
        ),
        migrations.CreateModel(
            name='ProviderReport',
            fields=[
                ('number', models.BigAutoField(primary_key=True, serialize=False)),
                ('received_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('due_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('attempts', models.PositiveSmallIntegerField(db_default=0, editable=False)),
                ('processed_at', models.DateTimeField(editable=False, null=True)),
                ('verdict', models.CharField(blank=True, choices=[('recorded', 'Recorded'), ('repeated', 'duplicate'), ('not_ours', 'unknown recipient'), ('somebody_else', 'names another recipient'), ('says_nothing', 'no delivery status'), ('for_people', 'needs manual review'), ('poison', 'could not be processed')], default='', editable=False, max_length=16)),
                ('provider', models.CharField(max_length=40)),
                ('transport', models.CharField(db_default='', default='', editable=False, max_length=30)),
                ('digest', models.BinaryField(max_length=32, unique=True)),
                ('message_id', models.CharField(max_length=255)),
                ('event', models.JSONField()),
            ],
            options={
                'ordering': ['-number'],
                'abstract': False,
                'indexes': [models.Index(condition=models.Q(('processed_at', None)), fields=['due_at'], name='providerreport_due'), models.Index(condition=models.Q(('processed_at', None), _negated=True), fields=['processed_at'], name='providerreport_done')],
            },
        ),
    ]
