"""The event feed: entries, its head, and the progress of the sequencer."""


import django.contrib.postgres.fields
import core.lib.model_fields
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='FeedEntry',
            fields=[
                ('pk', models.CompositePrimaryKey('workspace_id', 'position', blank=True, editable=False, primary_key=True, serialize=False)),
                ('workspace_id', core.lib.model_fields.IdField('ws_', editable=False)),
                ('position', models.BigIntegerField()),
                ('source', models.CharField(choices=[('emails', 'Emails'), ('workspaces', 'Workspaces')], max_length=10)),
                ('number', models.BigIntegerField()),
                ('recorded_at', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='FeedHead',
            fields=[
                ('id', models.PositiveSmallIntegerField(default=1, editable=False, primary_key=True, serialize=False)),
                ('position', models.BigIntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name='FeedProgress',
            fields=[
                ('source', models.CharField(choices=[('emails', 'Emails'), ('workspaces', 'Workspaces')], max_length=10, primary_key=True, serialize=False)),
                ('last', models.BigIntegerField(default=0)),
                ('gaps', models.TextField(default='{}')),
                ('new_gaps', models.TextField(default='{}')),
                ('writers', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), default=list, size=None)),
            ],
        ),
    ]
