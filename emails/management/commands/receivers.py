"""manage.py receivers: the table of receivers in force."""

from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from core.delivery.receivers import Receiver

HEADING = ("key", "name", "connections", "messages each", "a minute", "tls", "mail hosts")


class Command(BaseCommand):
    help = "Check RECEIVERS_FILE, and print the table of receivers in force; exit with 1 and the error if it is wrong."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", choices=["check"])

    def handle(self, *args: Any, **options: Any) -> None:
        # Django's checks, which run first, report a mistake in the file.
        rows = [HEADING, *map(_row, (settings.RECEIVERS.default, *settings.RECEIVERS.receivers))]
        widths = [max(len(row[column]) for row in rows) for column in range(len(HEADING) - 1)]
        for row in rows:
            self.stdout.write(_line(row, widths))


def _row(one: Receiver) -> tuple[str, ...]:
    numbers = (one.connections, one.messages_per_connection, one.per_minute or "no limit")
    return (one.key, one.name, *map(str, numbers), one.tls or "as others", ", ".join(one.mx) or "all others")


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    def padded() -> Iterator[str]:
        for cell, width in zip(row, widths, strict=False):
            yield cell.ljust(width)

    return "  ".join((*padded(), row[-1]))
