"""Migrations only add: old code keeps running on the new schema during a deployment."""

import re

import pytest
from django.apps import apps
from django.db.migrations import operations
from django.db.migrations.loader import MigrationLoader
from django.db.models import NOT_PROVIDED

# Operations that break the previous version: removed names, and rows that it can no longer write.
DESTRUCTIVE_OPERATIONS = (
    operations.DeleteModel, operations.RemoveField, operations.RenameModel, operations.RenameField,
    operations.AlterModelTable,
)  # fmt: skip
DESTRUCTIVE_SQL = re.compile(r"\bDROP\s+(TABLE|COLUMN)\b|\bRENAME\s+(TO|COLUMN)\b|\bSET\s+NOT\s+NULL\b", re.IGNORECASE)
PROJECT_APPS = {config.label for config in apps.get_app_configs() if not config.name.startswith(("django.", "unfold"))}


def migrations_after_the_first():
    loader = MigrationLoader(None, ignore_no_migrations=True)
    return [
        migration
        for (app, _), migration in sorted(loader.disk_migrations.items())
        if app in PROJECT_APPS and not migration.initial
    ]


def destructive_changes(migration):
    created = {op.name.lower() for op in migration.operations if isinstance(op, operations.CreateModel)}
    for op in migration.operations:
        if isinstance(op, DESTRUCTIVE_OPERATIONS):
            yield f"{type(op).__name__} {op.deconstruct()[2]}"
        if isinstance(op, operations.AddField) and op.model_name.lower() not in created and not is_optional(op.field):
            yield f"{op.model_name}.{op.name} is required, but unknown to the previous version"
        if isinstance(op, operations.RunSQL):
            yield from (match[0] for match in DESTRUCTIVE_SQL.finditer(str(op.sql)))


def is_optional(field):
    # Django drops a Python default from the column again, so that inserts of the previous version would fail.
    return field.null or field.db_default is not NOT_PROVIDED or field.many_to_many


@pytest.mark.django_db
def test_no_migration_breaks_the_previous_version():
    changes = {str(migration): list(destructive_changes(migration)) for migration in migrations_after_the_first()}
    assert {name: found for name, found in changes.items() if found} == {}


def test_destructive_changes_are_detected():
    from django.db import migrations, models

    migration = migrations.Migration("x", "emails")
    migration.operations = [
        operations.RemoveField("email", "subject"),
        operations.AddField("email", "weight", models.IntegerField(default=0)),
        operations.AddField("email", "height", models.IntegerField(null=True)),
        operations.RunSQL("ALTER TABLE emails_email DROP COLUMN subject"),
    ]
    assert len(list(destructive_changes(migration))) == 3
