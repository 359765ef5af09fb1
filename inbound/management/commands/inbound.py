"""manage.py inbound: the SMTP server that bounces and complaints come back to."""

import asyncio
import contextlib
import signal
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from inbound.receiver import serve


class Command(BaseCommand):
    help = "Take delivery reports and complaints for the return paths of our mail."

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(f"Reports are taken on {settings.INBOUND_HOST}:{settings.INBOUND_PORT}.")
        try:
            with contextlib.suppress(KeyboardInterrupt, asyncio.CancelledError):
                asyncio.run(_serve())
        except OSError as error:
            place = f"{settings.INBOUND_HOST}:{settings.INBOUND_PORT}"
            raise CommandError(f"Reports cannot be taken on {place}: {error.strerror}.") from error


async def _serve() -> None:
    task = asyncio.ensure_future(serve(host=settings.INBOUND_HOST, port=settings.INBOUND_PORT))
    # A message is stored or it is not answered: nothing has to be waited for but the threads.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    await task
