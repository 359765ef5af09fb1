"""Preparation of database connections before processes are forked, so that they share its memory.

The first sign-in of a process makes hundreds of small allocations for OpenSSL, and each copies a page that the process
shares with its parent: 2.7 MB (docs/decisions/0259).
"""

from django.conf import settings
from django.db import connection
from django.db.backends.postgresql.psycopg_any import get_adapters_template
from psycopg.pq import PGconn


def prepare_connections() -> None:
    """Load what the first connection and query of a process load. Connects to no server."""
    nowhere = PGconn.connect_start(b"host=/")
    nowhere.encrypt_password(b"password", b"user", b"scram-sha-256")
    nowhere.finish()
    get_adapters_template(settings.USE_TZ, connection.timezone)
