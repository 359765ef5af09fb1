"""manage.py inbound: the SMTP server that receives bounces, complaints and email."""

import asyncio
import contextlib
import signal
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import DEFAULT_DB_ALIAS, connection

from inbound.receiver import serve
from lib.forking import name_process


class Command(BaseCommand):
    help = "Receive email of receiving domains over SMTP, and reports and complaints at the return paths of sent email."

    def handle(self, *args: Any, **options: Any) -> None:
        self.check(tags=["app_keys"], databases=[DEFAULT_DB_ALIAS])
        connection.close()
        name_process("inbound")
        address = f"{settings.INBOUND_HOST}:{settings.INBOUND_PORT}"
        try:
            with contextlib.suppress(KeyboardInterrupt, asyncio.CancelledError):
                asyncio.run(_serve(lambda: self.stdout.write(f"Listening for reports on {address}.")))
        except OSError as error:
            raise CommandError(f"Cannot listen on {address}: {error.strerror}.") from error


def run_receiver() -> None:
    """Receive on INBOUND_HOST and INBOUND_PORT until SIGTERM."""
    with contextlib.suppress(KeyboardInterrupt, asyncio.CancelledError):
        asyncio.run(_serve(lambda: None))


async def _serve(started: Callable[[], object]) -> None:
    task = asyncio.ensure_future(serve(host=settings.INBOUND_HOST, port=settings.INBOUND_PORT, started=started))
    # Every reply of 250 follows a commit, so cancelling loses nothing; only the threads have to finish.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    await task
