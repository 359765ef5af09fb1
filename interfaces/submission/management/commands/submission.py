"""manage.py submission: the SMTP server to which programs submit email."""

import multiprocessing
from functools import partial
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import DEFAULT_DB_ALIAS, connection

from core.lib.forking import fork_programs
from core.lib.network.listening import CannotListen, show_addresses
from core.lib.network.tls_certificate import certificate_error
from interfaces.submission.server import Listener, open_listeners, run_server


class Command(BaseCommand):
    help = "Accept email over SMTP from programs with an API key."

    def handle(self, *args: Any, **options: Any) -> None:
        self.check(tags=["app_keys"], databases=[DEFAULT_DB_ALIAS])
        # A fork must not share it.
        connection.close()
        listeners = require_listeners(processes=settings.SUBMISSION_CONCURRENCY or multiprocessing.cpu_count())
        self.stdout.write(f"Listening on {show_addresses([listener.socket for listener in listeners[0]])}.")
        programs = {f"submission{number}": partial(run_server, own) for number, own in enumerate(listeners)}
        if program := fork_programs(programs):
            program()


def require_listeners(*, processes: int = 1) -> list[list[Listener]]:
    """Return the listeners of each process. Raises CommandError if a certificate or a port cannot be used."""
    _check_certificate()
    try:
        return open_listeners(processes=processes)
    except CannotListen as error:
        raise CommandError(str(error)) from error


def _check_certificate() -> None:
    if not settings.SUBMISSION_TLS_CERT:
        if not settings.SUBMISSION_ALLOW_PLAINTEXT:
            raise CommandError(
                "API keys must not be sent unencrypted. Set SUBMISSION_TLS_CERT and SUBMISSION_TLS_KEY to PEM files."
            )
        return
    if error := certificate_error(settings.SUBMISSION_TLS_CERT, settings.SUBMISSION_TLS_KEY):
        raise CommandError(f"SUBMISSION_TLS_CERT and SUBMISSION_TLS_KEY cannot be used: {error}")
