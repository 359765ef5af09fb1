"""Suppressions, as of version 1.1.0."""

import django.db.models.deletion
import django.db.models.functions.datetime
import core.lib.model_fields
import suppressions.models
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [("suppressions", name) for name in """
        0001_initial 0002_choices_as_functions 0003_streams 0004_of_streams
    """.split()]

    initial = True

    dependencies = [
        ('workspaces', '0001_squashed'),
    ]

    operations = [
        migrations.CreateModel(
            name='Suppression',
            fields=[
                ('id', core.lib.model_fields.IdField('sup_', editable=False, primary_key=True, serialize=False)),
                ('email', models.CharField(max_length=254)),
                ('address_key', models.CharField(editable=False, help_text='the normalized address', max_length=300)),
                ('stream', models.CharField(blank=True, db_default='', default='', max_length=40, help_text='The only stream that is blocked; absent if all are.')),
                ('reason', models.CharField(choices=suppressions.models.suppression_reasons, max_length=16, help_text='The reason of the suppression.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='suppressions', to='workspaces.workspace')),
            ],
            options={
                'ordering': ['-created_at', '-id'],
                'indexes': [models.Index(fields=['workspace', '-created_at', '-id'], name='suppressions_newest_first'), models.Index(condition=models.Q(('stream', ''), _negated=True), fields=['workspace', 'stream', '-created_at', '-id'], name='suppressions_of_streams')],
                'constraints': [models.UniqueConstraint(fields=('workspace', 'address_key'), name='one_suppression_an_address')],
            },
        ),
    ]
