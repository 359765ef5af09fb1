"""The squashed migrations make the tables that those before them made (docs/decisions/0280)."""

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.migrations.state import ProjectState

from tests.config.test_migrations import load_all

# The last migrations of earlier versions.
OF_0_1_0 = {
    "analytics": "0005_plain_model_names", "domains": "0002_verification", "emails": "0012_plain_model_names",
    "inbound": "0001_initial", "suppressions": "0001_initial", "system_mail": "0001_initial",
    "templates_app": "0002_retired", "webhooks": "0003_pending_delivery", "workspaces": "0005_judged_from_tomorrow",
}  # fmt: skip
OF_1_0_0 = {
    "analytics": "0007_counters", "counters": "0001_initial", "domains": "0004_finding_codes",
    "emails": "0023_events_elsewhere", "events": "0004_former_events", "inbound": "0001_initial",
    "provisioning": "0002_responses", "suppressions": "0002_choices_as_functions", "system_mail": "0002_language",
    "templates_app": "0004_fill_template_of_version", "webhooks": "0007_kinds_from_the_table",
    "workspaces": "0017_choices_as_functions",
}  # fmt: skip
# An index keeps the cast that its column's former type needed.
CAST = "replace(replace(replace({}, '::character varying', ''), '::text[]', ''), '::text', '')"
CATALOGUE = {
    "columns": """
        SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, a.attstorage,
               a.attcompression, coalesce(a.attstattarget, -1), pg_get_expr(d.adbin, d.adrelid)
          FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
          LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
         WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
    """,
    "constraints": """
        SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid)
          FROM pg_constraint WHERE connamespace = 'public'::regnamespace
    """,
    "indexes": f"""
        SELECT indexname, regexp_replace({CAST.format("indexdef")}, '[()\\s]', '', 'g')
          FROM pg_indexes WHERE schemaname = 'public'
    """,
    "storage": "SELECT relname, reloptions FROM pg_class WHERE relnamespace = 'public'::regnamespace",
    "statistics": "SELECT stxname, pg_get_statisticsobjdef(oid) FROM pg_statistic_ext",
    "feed": "SELECT source, last, gaps, new_gaps, writers FROM events_feedprogress",
    "cursor": "SELECT id, position FROM webhooks_feedcursor",
}


def catalogue():
    with connection.cursor() as cursor:
        rows = {}
        for name, sql in CATALOGUE.items():
            cursor.execute(sql)
            rows[name] = {repr(row) for row in cursor.fetchall() if "django_migrations" not in str(row[0])}
    return rows


def replaced_leaves():
    return [key for key in load_all().graph.leaf_nodes() if key[1] != "0001_squashed"]


def migrate_replaced(targets):
    """Apply the migrations that the baselines replace, up to the targets, as code without baselines does."""
    executor = MigrationExecutor(connection)
    executor.loader = load_all(connection)
    executor.migrate([*targets])
    MigrationRecorder.Migration.objects.filter(name="0001_squashed").delete()


def without_texts(state: ProjectState) -> None:
    """Remove the texts of fields, which change no table: the squashed migrations have those of today."""
    for model in state.models.values():
        for field in model.fields.values():
            field.help_text = ""


@pytest.mark.django_db
def test_squashed_migrations_end_in_the_models_of_the_migrations_that_they_replace():
    replaced, current = (
        load_all().project_state(replaced_leaves()),
        MigrationLoader(None, ignore_no_migrations=True).project_state(),
    )
    for state in (replaced, current):
        without_texts(state)
    changes = MigrationAutodetector(replaced, current)._detect_changes()
    assert {label: [str(op) for m in found for op in m.operations] for label, found in changes.items()} == {}


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
def test_the_tables_are_those_of_the_migrations_that_they_replace():
    """Also those of databases of earlier versions after their upgrade, which need the old migrations no more."""
    squashed = {key for key, migration in load_all().disk_migrations.items() if migration.replaces}
    expected = tables_after([])
    for version in (OF_0_1_0.items(), OF_1_0_0.items(), replaced_leaves()):
        assert tables_after(version) == expected, version
        assert squashed <= MigrationRecorder(connection).applied_migrations().keys(), version


def tables_after(replaced):
    """Return the tables after `migrate` in a database with those of the replaced migrations."""
    with connection.cursor() as cursor:
        cursor.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    if replaced:
        migrate_replaced(replaced)
    call_command("migrate", verbosity=0)
    return catalogue()
