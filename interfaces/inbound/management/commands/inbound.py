"""manage.py inbound: the SMTP server that receives bounces, complaints and email."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import DEFAULT_DB_ALIAS, connection

from core.lib.forking import name_process, return_large_blocks
from core.lib.network.listening import CannotListen, open_sockets, show_addresses
from core.lib.network.tls_certificate import certificate_error
from interfaces.inbound.server import serve


class Command(BaseCommand):
    help = "Receive email of receiving domains over SMTP, and reports and complaints at the return paths of sent email."

    def handle(self, *args: Any, **options: Any) -> None:
        self.check(tags=["app_keys"], databases=[DEFAULT_DB_ALIAS])
        connection.close()
        name_process("inbound")
        sockets = require_sockets()
        self.stdout.write(f"Listening on {show_addresses(sockets)}.")
        run_inbound(sockets)


def require_sockets() -> list[socket.socket]:
    """Listen on INBOUND_HOST and INBOUND_PORT. Raises CommandError if they or the certificate cannot be used."""
    certificate, key = settings.INBOUND_TLS_CERT, settings.INBOUND_TLS_KEY
    if certificate and (error := certificate_error(certificate, key)):
        raise CommandError(f"INBOUND_TLS_CERT and INBOUND_TLS_KEY cannot be used: {error}")
    try:
        return open_sockets(settings.INBOUND_HOST, settings.INBOUND_PORT, setting="INBOUND_HOST or INBOUND_PORT")
    except CannotListen as error:
        raise CommandError(str(error)) from error


def run_inbound(sockets: Sequence[socket.socket]) -> None:
    """Receive until SIGTERM."""
    return_large_blocks()
    with contextlib.suppress(KeyboardInterrupt, asyncio.CancelledError):
        asyncio.run(_serve(sockets))


async def _serve(sockets: Sequence[socket.socket]) -> None:
    task = asyncio.ensure_future(serve(sockets))
    # Every reply of 250 follows a commit, so cancelling loses nothing; only the threads have to finish.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    await task
