"""The app of the dialects, which registers the formats of their webhooks (docs/decisions/0155)."""

from importlib import import_module

from django.apps import AppConfig

from webhooks.formats import register_format

DIALECTS = ("resend", "postmark", "sendgrid")


class CompatConfig(AppConfig):
    name = "compat"

    def ready(self) -> None:
        for dialect in DIALECTS:
            register_format(import_module(f"compat.{dialect}.webhook_format").FORMAT)
