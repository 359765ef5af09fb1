"""The app of the inbox, which captures messages (docs/decisions/0387) and removes its copies of contents (0351)."""

from django.apps import AppConfig

from core.delivery.recipients import INBOX


class InboxConfig(AppConfig):
    name = "interfaces.inbound.inbox"

    def ready(self) -> None:
        from emails.upkeep.content_removal import COPIES  # noqa: PLC0415 - reads models
        from interfaces.inbound.inbox.retention import remove_contents  # noqa: PLC0415 - reads models
        from interfaces.inbound.inbox.storing import capture_mail  # noqa: PLC0415 - reads models

        COPIES.register("inbox", remove_contents)
        INBOX.register("inbox", capture_mail)
