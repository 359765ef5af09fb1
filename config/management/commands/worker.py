"""manage.py worker: WORKER_CONCURRENCY Celery processes, started and stopped together."""

from typing import Any

from django.core.management.base import BaseCommand

from config.start.warnings import warn_at_start
from config.worker import worker_programs
from core.lib.forking import fork_programs


class Command(BaseCommand):
    help = "Run WORKER_CONCURRENCY worker processes, by default one per core."
    # The other checks load the URLs, and with them code that workers do not use.
    requires_system_checks = ("postrider",)

    def handle(self, *args: Any, **options: Any) -> None:
        warn_at_start()
        if program := fork_programs(worker_programs()):
            program()
