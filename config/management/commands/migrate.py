"""manage.py migrate: Django's command, with a progress bar in a terminal."""

import sys
from typing import Any

from django.core.management.commands import migrate
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from lib.progress import ProgressBar


class Command(migrate.Command):
    """Prints Django's line for each migration outside of a terminal."""

    bar: ProgressBar | None = None

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            super().handle(*args, **options)
        finally:
            if self.bar:
                self.bar.__exit__()

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
