"""Warnings in the log of a start: who gets no email, and what the database has and the settings lack."""

import logging

from django.conf import settings
from django.db import connection

from config.checks import recipient_warnings
from config.start.app_keys import missing_keys
from config.start.routes import transport_warnings
from core.lib.forking import fork_once

log = logging.getLogger("postrider.start")


def warn_at_start() -> None:
    """Log the warnings; those that need it in a forked process: a start does not wait for the database.

    See docs/decisions/0147.
    """
    for message in recipient_warnings():
        log.warning(message)
    fork_once(_log_warnings)


def _log_warnings() -> None:
    try:
        for message in (*missing_keys(), *(transport_warnings() if settings.TRANSPORTS.is_named else ())):
            log.warning(message)
    finally:
        connection.close()
