"""Templates and their versions, as of version 1.1.0."""

import django.db.models.deletion
import django.db.models.functions.datetime
import core.lib.model_fields
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [("templates_app", name) for name in """
        0001_initial 0002_retired 0003_template_of_version 0004_fill_template_of_version
    """.split()]

    initial = True

    dependencies = [
        ('workspaces', '0001_squashed'),
    ]

    operations = [
        migrations.CreateModel(
            name='Template',
            fields=[
                ('id', core.lib.model_fields.IdField('tpl_', editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=100)),
                ('alias', models.CharField(max_length=100, null=True, help_text='A name that works in place of the id; null without one. Unique in the workspace.')),
                ('strict_variables', models.BooleanField(default=False, help_text='Whether a missing variable refuses the email. Otherwise it is rendered as an empty string.')),
                ('sample_data', models.TextField(db_default='', default='')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('updated_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False, help_text='The time of the last change.')),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='templates', to='workspaces.workspace')),
            ],
            options={
                'ordering': ['-created_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='TemplateVersion',
            fields=[
                ('id', core.lib.model_fields.IdField('tplv_', editable=False, primary_key=True, serialize=False)),
                ('subject', models.TextField()),
                ('html', models.TextField()),
                ('text', models.TextField()),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('retired_at', models.DateTimeField(help_text='replaced, or its template deleted', null=True)),
                ('template', models.ForeignKey(help_text='null after the template was deleted', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='versions', to='templates_app.template')),
            ],
        ),
        migrations.AddField(
            model_name='template',
            name='version',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='templates_app.templateversion'),
        ),
        migrations.AddIndex(
            model_name='template',
            index=models.Index(fields=['workspace', '-created_at', '-id'], name='template_newest'),
        ),
        migrations.AddConstraint(
            model_name='template',
            constraint=models.UniqueConstraint(fields=('workspace', 'alias'), name='one_alias_a_workspace'),
        ),
    ]
