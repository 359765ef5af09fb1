"""The app of the inbox, which removes its copies of contents with those of the emails (docs/decisions/0351)."""

from django.apps import AppConfig


class InboxConfig(AppConfig):
    name = "interfaces.inbound.inbox"

    def ready(self) -> None:
        from emails.upkeep.content_removal import COPIES  # noqa: PLC0415 - reads models
        from interfaces.inbound.inbox.retention import remove_contents  # noqa: PLC0415 - reads models

        COPIES.register("inbox", remove_contents)
