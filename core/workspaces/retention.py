"""Retention: deletes expired data in small batches with pauses in between (docs/decisions/0044).

Each app with expiring data provides a generator that deletes one batch after the other:

    def batches(workspace_id: str, age: timedelta) -> Iterator[None]: …   # yields after each transaction
    sweep("webhooks", batches)
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from zlib import crc32

from django.db import DEFAULT_DB_ALIAS, Error, connections
from django.db.models import QuerySet

from core.lib.worker import shutdown
from core.workspaces.models import Workspace

Batches = Callable[[str, timedelta], Iterator[None]]

# Pause after each batch, relative to its duration: three quarters of the time are left for sending.
REST_RATIO = 3.0
# No batch was left.
END = object()


def sweep(kind: str, batches: Batches, *, workspaces: QuerySet[Workspace] | None = None) -> None:
    """Delete data older than each workspace's plan allows; return early when the process shuts down.

    workspaces: all by default. Does nothing if a sweep of this kind is already running in any process.
    """
    with only_one(kind) as is_locked:
        chosen = Workspace.objects.all() if workspaces is None else workspaces
        for workspace in chosen.only("id", "plan", "own_limits").order_by("id") if is_locked else ():
            if not run_batches(batches(workspace.id, workspace.limits.retention)):
                return


def run_alone(kind: str, batches: Iterator[None]) -> None:
    """Run all batches with their pauses; from the second on, only if no other process runs those of this kind.

    For tasks that are due again before a long run ends: they would work in its pauses, and occupy the threads of
    workers. A run of at most one batch needs no lock.
    """
    if next(batches, END) is not END:
        with only_one(kind) as is_locked:
            if is_locked:
                run_batches(batches)


def run_batches(batches: Iterator[None]) -> bool:
    """Run all batches, each followed by a pause of REST_RATIO times its duration; return False on shutdown."""
    started = time.monotonic()
    for _ in batches:
        if shutdown.wait_for_stop(REST_RATIO * (time.monotonic() - started)):
            return False
        started = time.monotonic()
    return True


@contextmanager
def only_one(kind: str) -> Iterator[bool]:
    """Yield whether the lock was acquired. PostgreSQL releases it when the connection ends.

    A transaction of another connection has the lock: locks of a session mean nothing behind PgBouncer, which may give
    each transaction another session (docs/decisions/0251). It has no snapshot, and delays no vacuum.
    """
    database = connections.create_connection(DEFAULT_DB_ALIAS)
    database.set_autocommit(False)
    try:
        with database.cursor() as cursor:
            cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [crc32(f"retention of {kind}".encode())])
            (is_locked,) = cursor.fetchone()
        yield is_locked
    finally:
        with suppress(Error):
            database.rollback()
        database.close()
