"""The app of the dialects, which registers the formats of their webhooks (docs/decisions/0155)."""

from importlib import import_module

from django.apps import AppConfig

from webhooks.formats import FORMATS

DIALECTS = ("resend", "postmark", "sendgrid")
# Mailgun has no dialect, only a format of received emails.
PROVIDERS = (*DIALECTS, "mailgun")


class CompatConfig(AppConfig):
    name = "interfaces.compat"

    def ready(self) -> None:
        for provider in PROVIDERS:
            FORMATS.register(provider, import_module(f"interfaces.compat.{provider}.webhook_format").FORMAT)
