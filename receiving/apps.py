"""Receiving: routes, blocks and received emails."""

from django.apps import AppConfig


class ReceivingConfig(AppConfig):
    name = "receiving"

    def ready(self) -> None:
        from emails.accept.answers import register_answered  # noqa: PLC0415 - reads models
        from events.kinds import EventKind  # noqa: PLC0415 - reads models
        from events.subjects import register_subject  # noqa: PLC0415 - reads models
        from receiving.answering import find_answered  # noqa: PLC0415 - reads models
        from receiving.publishing import describe_received  # noqa: PLC0415 - reads models

        register_subject(EventKind.RECEIVED, describe_received)
        register_answered(find_answered)
