"""Project app: system checks, and no statement timeout for migrations."""

from typing import Any

from django.apps import AppConfig
from django.contrib.admin.apps import SimpleAdminConfig
from django.core.checks import register
from django.db import connections
from django.db.models.signals import pre_migrate

from config import checks


class ProjectConfig(AppConfig):
    name = "config"

    def ready(self) -> None:
        from config.start.app_keys import check_app_keys  # noqa: PLC0415 - reads models
        from config.start.routes import check_transports  # noqa: PLC0415 - as well

        register(checks.check_settings, "postrider")
        register(checks.check_recipients, "postrider")
        register(check_app_keys, "app_keys")
        register(check_transports, "transports")
        pre_migrate.connect(lift_statement_timeout, sender=self)


class StaffAdminConfig(SimpleAdminConfig):
    """The staff admin. config.urls loads its pages: processes without URLs do not need them."""

    default_site = "config.staff.StaffSite"


def lift_statement_timeout(using: str, **_: Any) -> None:
    """Remove the statement timeout of requests, so that a migration may build an index for as long as necessary."""
    with connections[using].cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
