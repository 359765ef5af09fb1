"""Migrations only add, and lock no table for long: old code keeps running on the new schema during a deployment."""

import re
from pathlib import Path
from uuid import uuid4

import pytest
from django.apps import apps
from django.conf import settings
from django.contrib.postgres.operations import AddConstraintNotValid, AddIndexConcurrently
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations import operations
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import NOT_PROVIDED

# Operations that break the previous version: removed names, and rows that it can no longer write.
DESTRUCTIVE_OPERATIONS = (
    operations.DeleteModel, operations.RemoveField, operations.RenameModel, operations.RenameField,
    operations.AlterModelTable,
)  # fmt: skip
DESTRUCTIVE_SQL = re.compile(r"\bDROP\s+(TABLE|COLUMN)\b|\bRENAME\s+(TO|COLUMN)\b|\bSET\s+NOT\s+NULL\b", re.IGNORECASE)
# Statements that block writers of an existing table until every row is read.
LOCKING_SQL = re.compile(r"\bCREATE\s+(UNIQUE\s+)?INDEX\s+(?!CONCURRENTLY)\w+", re.IGNORECASE)
# Migrations of the first months, when no installation had rows yet.
BEFORE_THE_RULE = {
    "domains.0002_verification", "emails.0003_search", "emails.0006_provider_message_id", "emails.0007_finished",
    "templates_app.0003_template_of_version",
}  # fmt: skip
# A documented command with a target, as in "migrate events 0003".
TARGET = re.compile(r"\bmigrate\s+([a-z_]+)\s+(\d{4}\w*|zero)\b")
DOCUMENTED = ("*.md", "docs/**/*.md", "deploy/**/*", "clients/**/*.md")
PROJECT_APPS = {config.label for config in apps.get_app_configs() if not config.name.startswith(("django.", "unfold"))}


def load_all(connection=None):
    """Load the migrations that the baselines replace as well."""
    return MigrationLoader(connection, ignore_no_migrations=True, replace_migrations=False)


def migrations_after_the_first():
    loader = load_all()
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
        if isinstance(op, operations.AddField) and op.model_name.lower() not in created and is_generated(op.field):
            yield f"{op.model_name}.{op.name} gets the same generated value in all rows"
        if isinstance(op, operations.RunSQL):
            yield from (match[0] for match in DESTRUCTIVE_SQL.finditer(str(op.sql)))


def locking_changes(migration, state):
    """Yield the changes that block writers of a table while PostgreSQL reads or rewrites it.

    state: the models before the migration.
    """
    created = {op.name.lower() for op in migration.operations if isinstance(op, operations.CreateModel)}
    for op in migration.operations:
        if isinstance(op, operations.SeparateDatabaseAndState):
            # A model of another app that moves here; the next operations may change its table.
            op.state_forwards(migration.app_label, state)
        if isinstance(op, operations.RunSQL):
            yield from (match[0] for match in LOCKING_SQL.finditer(str(op.sql)))
        if getattr(op, "model_name_lower", "") in created:
            continue
        if isinstance(op, operations.AddIndex) and not isinstance(op, AddIndexConcurrently):
            yield f"the index {op.index.name} is not built concurrently"
        if isinstance(op, operations.AddConstraint) and not isinstance(op, AddConstraintNotValid):
            yield f"the constraint {op.constraint.name} is validated under a lock"
        if isinstance(op, operations.AlterField):
            before = state.models[migration.app_label, op.model_name_lower].fields[op.name]
            if op.field.is_relation and op.field.db_constraint:
                yield f"{op.model_name}.{op.name} gets a new foreign key, which locks both tables"
            yield from rewritten_column(before, op.field, name=f"{op.model_name}.{op.name}")


def rewritten_column(before, after, *, name):
    """Yield a description if PostgreSQL has to read all rows; a longer varchar changes the catalogue only."""
    if before.null and not after.null:
        yield f"{name} becomes NOT NULL"
    # The key of another model keeps its type.
    types = () if after.is_relation else (before.db_type(connection), after.db_type(connection))
    if types and types[0] != types[1] and not all((text or "").startswith("varchar") for text in types):
        yield f"{name} changes its type from {types[0]} to {types[1]}"


def is_generated(field):
    return callable(field.default) and field.default not in {NOT_PROVIDED, list, dict}


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
        operations.AddField("email", "other_id", models.UUIDField(null=True, default=uuid4)),
        operations.RunSQL("ALTER TABLE emails_email DROP COLUMN subject"),
    ]
    assert len(list(destructive_changes(migration))) == 4


@pytest.mark.django_db
def test_no_migration_blocks_writers_of_an_existing_table():
    loader = load_all()
    changes = {}
    for migration in migrations_after_the_first():
        state = loader.project_state((migration.app_label, migration.name), at_end=False)
        changes[str(migration)] = list(locking_changes(migration, state))
    blocking = {name: details for name, details in changes.items() if details}
    assert blocking.keys() == BEFORE_THE_RULE, blocking


def test_blocking_changes_are_detected():
    from django.db import migrations, models
    from django.db.migrations.state import ModelState, ProjectState

    subject = models.CharField(max_length=10, null=True)
    state = ProjectState()
    state.add_model(ModelState("emails", "Email", [("id", models.AutoField(primary_key=True)), ("subject", subject)]))
    index = models.Index(fields=["subject"], name="email_subject")
    migration = migrations.Migration("x", "emails")
    migration.operations = [
        operations.AddIndex("email", index),
        operations.AddConstraint("email", models.UniqueConstraint(fields=["subject"], name="one_subject")),
        operations.AlterField("email", "subject", models.CharField(max_length=20)),
        operations.AlterField("email", "subject", models.IntegerField(null=True)),
        operations.AlterField("email", "subject", models.ForeignKey("emails.email", models.CASCADE, null=True)),
        operations.RunSQL("CREATE INDEX email_subject ON emails_email (subject)"),
        AddIndexConcurrently("email", index),
        operations.AlterField("email", "subject", models.CharField(max_length=20, null=True)),
        operations.RunSQL("CREATE INDEX CONCURRENTLY email_subject ON emails_email (subject)"),
    ]
    assert len(list(locking_changes(migration, state))) == 6


def lost_by(app, target):
    """Yield the tables and columns that a migration to a target would drop."""
    executor = MigrationExecutor(connection)
    executor.loader = load_all(connection)
    name = None if target == "zero" else executor.loader.get_migration_by_prefix(app, target).name
    for migration, is_backwards in executor.migration_plan([(app, name)]):
        for op in database_operations(migration) if is_backwards else ():
            if isinstance(op, operations.CreateModel):
                yield f"{migration.app_label}.{op.name}"
            if isinstance(op, operations.AddField):
                yield f"{migration.app_label}.{op.model_name}.{op.name}"
            if isinstance(op, operations.RunSQL):
                yield from (match[0] for match in DESTRUCTIVE_SQL.finditer(str(op.reverse_sql)))


def database_operations(migration):
    for op in migration.operations:
        yield from op.database_operations if isinstance(op, operations.SeparateDatabaseAndState) else [op]


def documented_targets():
    paths = {path for pattern in DOCUMENTED for path in Path(settings.BASE_DIR).glob(pattern) if path.is_file()}
    return {match.groups() for path in paths for match in TARGET.finditer(path.read_text(errors="replace"))}


@pytest.mark.django_db
def test_no_documented_step_drops_tables_or_columns():
    lost = {target: [*lost_by(*target)] for target in documented_targets()}
    assert {target: names for target, names in lost.items() if names} == {}


@pytest.mark.django_db
def test_tables_and_columns_that_a_step_would_drop_are_detected():
    assert TARGET.search("run `postrider-admin migrate events 0003`, so that").groups() == ("events", "0003")
    dropped = {"webhooks.FeedCursor", "webhooks.webhook.sealed_headers"}
    assert dropped <= {*lost_by("events", "0003")}


@pytest.mark.django_db
def test_a_reversal_is_refused_before_it_begins():
    applied = MigrationRecorder(connection).applied_migrations().keys()
    tables = connection.introspection.table_names()
    for app, target in (("events", "0003"), ("streams", "zero"), ("webhooks", "0008")):
        with pytest.raises(CommandError, match="prepare_downgrade"):
            call_command("migrate", app, target, verbosity=0)
    assert MigrationRecorder(connection).applied_migrations().keys() == applied
    assert connection.introspection.table_names() == tables
