"""System emails, as of version 1.1.0."""

import django.db.models.functions.datetime
import core.lib.model_fields
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [("system_mail", name) for name in """
        0001_initial 0002_language 0003_handed_to 0004_queued
    """.split()]

    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name='SystemMail',
            fields=[
                ('id', core.lib.model_fields.IdField('sysm_', editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('invitation', 'Invitation'), ('reset', 'password reset'), ('proof', 'address confirmation'), ('notice', 'security notice')], max_length=12)),
                ('recipient', models.EmailField(max_length=254)),
                ('subject', models.CharField(max_length=200)),
                ('sealed_text', models.TextField(editable=False)),
                ('language', models.CharField(db_default='en', default='en', editable=False, max_length=8)),
                ('state', models.CharField(choices=[('waiting', 'Queued'), ('sent', 'Sent'), ('failed', 'Failed'), ('nobody', 'no such account')], default='waiting', max_length=8)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('due_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('finished_at', models.DateTimeField(editable=False, null=True)),
                ('fence', models.PositiveIntegerField(db_default=0, editable=False)),
                ('attempts', models.PositiveIntegerField(db_default=0, editable=False)),
                ('reply', models.TextField(blank=True, editable=False)),
                ('handed_to', models.CharField(editable=False, max_length=30, null=True)),
            ],
            options={
                'verbose_name': 'system email',
                'verbose_name_plural': 'system emails',
                'indexes': [models.Index(condition=models.Q(('state', 'waiting')), fields=['due_at'], name='system_mail_due'), models.Index(fields=['created_at'], name='system_mail_age')],
            },
        ),
    ]
