"""manage.py migrate: Django's command, with a progress bar in a terminal, beside a running service.

It reverses no migration by accident: that would drop tables and columns with their data, and no way back to an old
version needs it (docs/upgrades.md). After `prepare_downgrade` it lets the sequencer of this version take over again.
"""

import sys
import time
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.core.management.commands import migrate
from django.db import OperationalError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from config.apps import lift_statement_timeout
from core.lib.progress import ProgressBar
from core.lib.sql import is_conflict
from events.former_sequencer import take_over_feed

ATTEMPTS = 10
REFUSAL = """
Reversing {migration} may drop tables and columns with their data, and so may each migration that depends on it. \
Nothing was changed.
Old code works with the new tables: install it and restart. Before a version before 1.0 starts again, run \
manage.py prepare_downgrade. See docs/upgrades.md.
To reverse migrations of a database whose data you do not need, add --discard-data.
"""


class Command(migrate.Command):
    """Prints Django's line for each migration outside of a terminal, or one line per tenth with --progress."""

    bar: ProgressBar | None = None
    shows_bar = False
    may_reverse = False

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--discard-data", action="store_true", help="allow the reversal of migrations")
        parser.add_argument("--progress", action="store_true", help="show the progress also outside of a terminal")

    def handle(self, *args: Any, **options: Any) -> None:
        self.may_reverse = options["discard_data"]
        self.shows_bar = options["progress"] or sys.stderr.isatty()
        try:
            self._migrate(*args, **options)
        finally:
            if self.bar:
                self.bar.__exit__()
        if not options["plan"] and not options["check_unapplied"] and is_log_migrated() and take_over_feed():
            self.stdout.write("The sequencer of this version continues the feed of events.")

    def _migrate(self, *args: Any, **options: Any) -> Any:
        """Migrate; after a migration that was rolled back because of a lock, continue with it."""
        for attempt in range(1, ATTEMPTS):
            try:
                return self._migrate_once(*args, **options)
            except OperationalError as error:
                if not is_conflict(error):
                    raise
            self.stderr.write("\nThe service holds a lock that this migration needs. It is repeated.")
            time.sleep(attempt)
        return self._migrate_once(*args, **options)

    def _migrate_once(self, *args: Any, **options: Any) -> Any:
        if is_before_1_0() and not (options["plan"] or options["check_unapplied"]):
            apply_replaced_migrations()
        return super().handle(*args, **options)

    def migration_progress_callback(self, action: str, migration: Any = None, fake: bool = False) -> None:  # noqa: FBT001, FBT002 - Django's signature
        # Before the first of them is reversed.
        if action == "unapply_start" and not self.may_reverse:
            raise CommandError(REFUSAL.strip().format(migration=migration))
        if not self.shows_bar or action not in {"apply_start", "apply_success"}:
            super().migration_progress_callback(action, migration, fake)
        elif action == "apply_start":
            self.bar = self.bar or ProgressBar("Migrations", total=count_unapplied())
            self.bar.advance(0, detail=str(migration))
        elif self.bar:
            self.bar.advance()


def count_unapplied() -> int:
    executor = MigrationExecutor(connection)
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def is_log_migrated() -> bool:
    return ("events", "0004_former_events") in MigrationRecorder(connection).applied_migrations()


def is_before_1_0() -> bool:
    """Return whether the app emails has made tables that belong to the app events since (docs/decisions/0280)."""
    applied = MigrationRecorder(connection).applied_migrations()
    return ("emails", "0001_initial") in applied and ("events", "0001_initial") not in applied


def apply_replaced_migrations() -> None:
    """Apply the migrations that the squashed ones replace, one after another."""
    executor = MigrationExecutor(connection)
    executor.loader = MigrationLoader(connection, replace_migrations=False)
    lift_statement_timeout(connection.alias)
    executor.migrate([squashed.replaces[-1] for squashed in executor.loader.replacements.values()])
