"""Exports of people, with the parts of their files (docs/decisions/0373)."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import core.lib.model_fields


class Migration(migrations.Migration):
    dependencies = [("privacy", "0001_erasures"), ("workspaces", "0019_own_limits")]

    operations = [
        migrations.CreateModel(
            name="SubjectExport",
            fields=[
                ("id", core.lib.model_fields.IdField("sxp_", editable=False, primary_key=True, serialize=False)),
                ("email", models.CharField(blank=True, max_length=254)),
                ("edition", models.PositiveIntegerField(default=1)),
                ("counts", models.JSONField(default=dict)),
                ("size", models.BigIntegerField(default=0)),
                (
                    "left_out",
                    models.PositiveIntegerField(
                        default=0,
                        help_text="The number of messages that are not in the file, which would be too large.",
                    ),
                ),
                ("step", models.PositiveSmallIntegerField(default=0)),
                ("place", models.JSONField(null=True)),
                (
                    "due_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        editable=False,
                        help_text="The time of the request.",
                    ),
                ),
                (
                    "completed_at",
                    models.DateTimeField(help_text="The time when the file was complete; null before that.", null=True),
                ),
                (
                    "expires_at",
                    models.DateTimeField(
                        help_text="The time at which the file is deleted; null before it is complete.", null=True
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="subject_exports",
                        to="workspaces.workspace",
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at", "-id"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("completed_at", None), models.Q(("email", ""), _negated=True)),
                        fields=["due_at"],
                        name="subject_export_due",
                    ),
                    models.Index(
                        condition=models.Q(("email", ""), _negated=True),
                        fields=["expires_at"],
                        name="subject_export_expiry",
                    ),
                    models.Index(fields=["workspace", "-created_at", "-id"], name="subject_export_newest"),
                ],
            },
        ),
        migrations.CreateModel(
            name="SubjectExportPart",
            fields=[
                ("number", models.BigAutoField(primary_key=True, serialize=False)),
                ("edition", models.PositiveIntegerField()),
                ("file", models.CharField(max_length=100)),
                (
                    "about",
                    django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), default=list, size=None),
                ),
                ("data", models.BinaryField()),
                (
                    "export",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="parts",
                        to="privacy.subjectexport",
                    ),
                ),
            ],
            options={
                "ordering": ["number"],
                "indexes": [models.Index(fields=["export", "edition", "file", "number"], name="subject_export_parts")],
            },
        ),
    ]
