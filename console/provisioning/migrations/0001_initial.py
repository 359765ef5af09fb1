"""Keys of the management API."""


import django.db.models.functions.datetime
import core.lib.model_fields
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='ManagementKey',
            fields=[
                ('id', core.lib.model_fields.IdField('mkey_', editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=100)),
                ('group', models.CharField(blank=True, help_text='the group of workspaces; empty for all workspaces', max_length=100)),
                ('secret_hash', models.CharField(editable=False, max_length=100)),
                ('last_four', models.CharField(editable=False, max_length=4)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('revoked_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('last_used_at', models.DateTimeField(blank=True, editable=False, null=True)),
            ],
        ),
    ]
