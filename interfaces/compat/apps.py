"""The app of the dialects, which registers the formats of their webhooks (docs/decisions/0155)."""

from importlib import import_module

from django.apps import AppConfig

from webhooks.formats import register_format

DIALECTS = ("resend", "postmark", "sendgrid")
# Mailgun has no dialect, only a format of received emails.
FORMATS = (*DIALECTS, "mailgun")


class CompatConfig(AppConfig):
    name = "interfaces.compat"

    def ready(self) -> None:
        for provider in FORMATS:
            register_format(import_module(f"interfaces.compat.{provider}.webhook_format").FORMAT)
