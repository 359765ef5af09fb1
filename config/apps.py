"""The project as an app of its own: its system checks, and patience for migrations."""

from typing import Any

from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig
from django.db import connections
from django.db.models.signals import pre_migrate

from config import checks


class Config(AppConfig):
    name = "config"

    def ready(self) -> None:
        checks.register_all()
        pre_migrate.connect(lift_statement_timeout, sender=self)


class StaffAdmin(AdminConfig):
    default_site = "config.staff.StaffSite"


def lift_statement_timeout(using: str, **_: Any) -> None:
    """Let a migration build an index for as long as it takes; a request may not run that long."""
    with connections[using].cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
