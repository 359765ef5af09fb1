"""manage.py inbox: the catch-all SMTP server of the embedded mode."""

import asyncio
import contextlib
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from interfaces.inbound.inbox.server import HOST, serve


class Command(BaseCommand):
    help = "Catch all messages sent to a loopback port and show them in the dashboard."

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.EMBEDDED:
            raise CommandError("The inbox accepts mail from any local process, so it requires MODE=embedded.")
        self.stdout.write(f"Inbox listening on {HOST}:{settings.INBOX_PORT}.")
        try:
            with contextlib.suppress(KeyboardInterrupt):
                asyncio.run(serve(settings.INBOX_PORT))
        except OSError as error:
            raise CommandError(f"The inbox cannot listen on {HOST}:{settings.INBOX_PORT}: {error.strerror}.") from error
