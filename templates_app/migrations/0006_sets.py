"""Layouts, partials and languages: kinds of templates, texts by locale, and the sets that emails are accepted with."""

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import core.lib.model_fields


class Migration(migrations.Migration):
    dependencies = [("templates_app", "0005_addresses")]

    operations = [
        migrations.AddField(
            "template",
            "kind",
            models.CharField(
                choices=[("template", "Template"), ("layout", "Layout"), ("partial", "Partial")],
                db_default="template",
                default="template",
                help_text="A template is sent; a layout is the frame of templates, a partial a piece that they insert.",
                max_length=8,
            ),
        ),
        migrations.AddField(
            "templateversion",
            "locale",
            models.CharField(
                db_default="",
                default="",
                help_text="The language of the subject, HTML and text; empty if it is not known.",
                max_length=35,
            ),
        ),
        migrations.AddField("templateversion", "locales", models.JSONField(db_default={}, default=dict)),
        migrations.AddField(
            "templateversion",
            "fallback",
            django.contrib.postgres.fields.ArrayField(
                base_field=models.TextField(), db_default=[], default=list, size=None
            ),
        ),
        migrations.AddField(
            "templateversion", "layout_id", core.lib.model_fields.IdField("tpl_", editable=False, null=True)
        ),
        migrations.AddField("templateversion", "partials", models.JSONField(db_default={}, default=dict)),
        migrations.CreateModel(
            name="TemplateSet",
            fields=[
                ("id", core.lib.model_fields.IdField("tpls_", editable=False, primary_key=True, serialize=False)),
                (
                    "names",
                    django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), size=None),
                ),
                (
                    "versions",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=core.lib.model_fields.IdField("tplv_", editable=False), size=None
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                (
                    "retired_at",
                    models.DateTimeField(help_text="replaced, or its template deleted", null=True),
                ),
                (
                    "template",
                    models.ForeignKey(
                        db_constraint=False,
                        help_text="null after the template was deleted",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="sets",
                        to="templates_app.template",
                    ),
                ),
                (
                    "version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="templates_app.templateversion",
                    ),
                ),
            ],
            options={
                "indexes": [
                    django.contrib.postgres.indexes.GinIndex(fields=["versions"], name="template_set_versions")
                ],
            },
        ),
        migrations.AddField(
            "template",
            "set",
            models.ForeignKey(
                help_text="null without a layout and partials",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="templates_app.templateset",
            ),
        ),
    ]
