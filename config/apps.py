"""Project app: system checks, and no statement timeout for migrations."""

from typing import Any

from django.apps import AppConfig, apps
from django.contrib.admin.apps import AdminConfig
from django.core.checks import register
from django.db import connections
from django.db.models.signals import pre_migrate

from config import checks
from dashboard.texts.staff_labels import translate_labels


class ProjectConfig(AppConfig):
    name = "config"

    def ready(self) -> None:
        from doctor.app_keys import check_app_keys  # noqa: PLC0415 - reads models
        from doctor.transports import check_transports  # noqa: PLC0415 - as well

        register(checks.check_settings, "postrider")
        register(check_app_keys, "app_keys")
        register(check_transports, "transports")
        pre_migrate.connect(lift_statement_timeout, sender=self)


class StaffAdminConfig(AdminConfig):
    default_site = "config.staff.StaffSite"

    def ready(self) -> None:
        super().ready()
        from django.contrib.admin import site  # noqa: PLC0415 - the registry of models must be ready

        translate_labels(model for model in apps.get_models() if site.is_registered(model))


def lift_statement_timeout(using: str, **_: Any) -> None:
    """Remove the statement timeout of requests, so that a migration may build an index for as long as necessary."""
    with connections[using].cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
