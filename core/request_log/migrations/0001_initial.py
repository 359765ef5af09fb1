"""Requests to the API, without constraints to other tables."""

import django.db.models.deletion
import core.lib.model_fields
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('workspaces', '0018_identities'),
    ]

    operations = [
        migrations.CreateModel(
            name='ApiRequest',
            fields=[
                ('id', core.lib.model_fields.IdField('req_', editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField()),
                ('method', models.CharField(max_length=10)),
                ('path', models.CharField(max_length=200)),
                ('status', models.PositiveSmallIntegerField()),
                ('milliseconds', models.PositiveIntegerField()),
                ('code', models.CharField(max_length=50)),
                ('email_id', core.lib.model_fields.IdField('', editable=False, null=True)),
                ('key', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='workspaces.apikey')),
                ('workspace', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='workspaces.workspace')),
            ],
            options={
                'verbose_name': 'API request',
                'indexes': [models.Index(fields=['workspace', 'id'], name='request_workspace'), models.Index(condition=models.Q(('email_id__isnull', False)), fields=['email_id'], name='request_email')],
            },
        ),
    ]
