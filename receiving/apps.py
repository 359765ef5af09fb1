"""Receiving: routes, blocks and received emails."""

from django.apps import AppConfig


class ReceivingConfig(AppConfig):
    name = "receiving"

    def ready(self) -> None:
        from emails.accept.answers import FINDERS  # noqa: PLC0415 - reads models
        from events.kinds import EventKind  # noqa: PLC0415 - reads models
        from events.subjects import DESCRIBERS  # noqa: PLC0415 - reads models
        from receiving.answers.answering import find_answered  # noqa: PLC0415 - reads models
        from receiving.publishing import describe_received  # noqa: PLC0415 - reads models

        DESCRIBERS.register(EventKind.RECEIVED, describe_received)
        FINDERS.register("received", find_answered)
