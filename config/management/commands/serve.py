"""manage.py serve: all processes of the embedded mode, forked from one that has loaded the application.

`bin/run` starts it, with PROMETHEUS_MULTIPROC_DIR set to an empty directory.
"""

import asyncio
import os
import socket
import sys
from functools import partial
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from gunicorn.app.wsgiapp import WSGIApplication

import config.wsgi  # noqa: F401 - loads the application before the fork
from config.worker import worker_programs
from core.lib.forking import Program, exit_with_parent, fork_programs
from interfaces.inbound.inbox.server import HOST, serve_on
from interfaces.inbound.management.commands.inbound import require_sockets, run_inbound
from interfaces.submission.management.commands.submission import require_listeners
from interfaces.submission.server import run_server


class Command(BaseCommand):
    help = "Run the web server, the workers with beat, the SMTP servers, and the inbox."

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.EMBEDDED:
            raise CommandError("Production runs the processes of the Procfile. Set MODE=embedded to try Postrider.")
        try:
            # While the inbox restarts, mail for it waits in the backlog.
            listener = socket.create_server((HOST, settings.INBOX_PORT))
        except OSError as error:
            raise CommandError(f"The inbox cannot listen on {HOST}:{settings.INBOX_PORT}: {error.strerror}.") from error
        inbound_sockets = require_sockets()
        (listeners,) = require_listeners()
        programs: dict[str, Program] = {
            "inbox": lambda: asyncio.run(serve_on(listener)),
            **worker_programs(with_beat=True),
            "inbound": partial(run_inbound, inbound_sockets),
            "submission": partial(run_server, listeners),
            "web": run_web,
        }
        if program := fork_programs(programs):
            program()


def run_web() -> None:
    # gunicorn's own processes would notice its death after half a minute, and keep the port until then.
    os.register_at_fork(after_in_child=partial(exit_with_parent, os.getpid()))
    sys.argv = ["gunicorn", "-c", "config/gunicorn.py", "config.wsgi"]
    WSGIApplication("%(prog)s [OPTIONS] [APP_MODULE]").run()
