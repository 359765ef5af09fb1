"""Old and new code run side by side while a version is brought out: migrations add, and take nothing away."""

import re

import pytest
from django.apps import apps
from django.db.migrations import operations
from django.db.migrations.loader import MigrationLoader
from django.db.models import NOT_PROVIDED

# What breaks the code that was written before: names that vanish, and rows that it can no longer write.
TAKES_AWAY = (
    operations.DeleteModel, operations.RemoveField, operations.RenameModel, operations.RenameField,
    operations.AlterModelTable,
)  # fmt: skip
SQL_TAKES_AWAY = re.compile(r"\bDROP\s+(TABLE|COLUMN)\b|\bRENAME\s+(TO|COLUMN)\b|\bSET\s+NOT\s+NULL\b", re.IGNORECASE)
OURS = {config.label for config in apps.get_app_configs() if not config.name.startswith(("django.", "unfold"))}


def ours():
    loader = MigrationLoader(None, ignore_no_migrations=True)
    return [one for (app, _), one in sorted(loader.disk_migrations.items()) if app in OURS and not one.initial]


def breaches(migration):
    made = {one.name.lower() for one in migration.operations if isinstance(one, operations.CreateModel)}
    for one in migration.operations:
        if isinstance(one, TAKES_AWAY):
            yield f"{type(one).__name__} {one.deconstruct()[2]}"
        if isinstance(one, operations.AddField) and one.model_name.lower() not in made and not is_optional(one.field):
            yield f"{one.model_name}.{one.name} is required, and old code does not know of it"
        if isinstance(one, operations.RunSQL):
            yield from (found[0] for found in SQL_TAKES_AWAY.finditer(str(one.sql)))


def is_optional(field):
    # A default of Python's is taken away from the column again: old code would then insert nothing for it.
    return field.null or field.db_default is not NOT_PROVIDED or field.many_to_many


@pytest.mark.django_db
def test_no_migration_takes_away_what_the_code_before_it_uses():
    assert {str(one): found for one in ours() if (found := list(breaches(one)))} == {}


def test_what_it_looks_for_is_found():
    from django.db import migrations, models

    taken = migrations.Migration("x", "emails")
    taken.operations = [
        operations.RemoveField("email", "subject"),
        operations.AddField("email", "weight", models.IntegerField(default=0)),
        operations.AddField("email", "height", models.IntegerField(null=True)),
        operations.RunSQL("ALTER TABLE emails_email DROP COLUMN subject"),
    ]
    assert len(list(breaches(taken))) == 3
