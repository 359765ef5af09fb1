"""manage.py migrate: Django's command, with a progress bar in a terminal, beside a running service."""

import sys
import time
from typing import Any

from django.core.management.commands import migrate
from django.db import OperationalError, connection
from django.db.migrations.executor import MigrationExecutor

from lib.progress import ProgressBar

# A deadlock with a request, and a lock that was not free within lock_timeout (PostgreSQL, appendix A).
BUSY_STATES = frozenset({"40P01", "55P03"})
ATTEMPTS = 10


class Command(migrate.Command):
    """Prints Django's line for each migration outside of a terminal."""

    bar: ProgressBar | None = None

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self._migrate(*args, **options)
        finally:
            if self.bar:
                self.bar.__exit__()

    def _migrate(self, *args: Any, **options: Any) -> Any:
        """Migrate; after a migration that was rolled back because of a lock, continue with it."""
        for attempt in range(1, ATTEMPTS):
            try:
                return super().handle(*args, **options)
            except OperationalError as error:
                if getattr(error.__cause__, "sqlstate", None) not in BUSY_STATES:
                    raise
            self.stderr.write("\nThe service holds a lock that this migration needs. It is repeated.")
            time.sleep(attempt)
        return super().handle(*args, **options)

    def migration_progress_callback(self, action: str, migration: Any = None, fake: bool = False) -> None:  # noqa: FBT001, FBT002 - Django's signature
        if not sys.stderr.isatty() or action not in {"apply_start", "apply_success"}:
            super().migration_progress_callback(action, migration, fake)
        elif action == "apply_start":
            self.bar = self.bar or ProgressBar("Migrations", total=count_unapplied())
            self.bar.advance(0, detail=str(migration))
        elif self.bar:
            self.bar.advance()


def count_unapplied() -> int:
    executor = MigrationExecutor(connection)
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
