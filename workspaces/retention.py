"""How what a plan does not keep any longer is deleted: in small batches, with rests (docs/decisions/0044).

A room that keeps logs brings a function that deletes one batch after the other:

    def batches(workspace_id: str, age: timedelta) -> Iterator[None]: …   # yields after each transaction
    sweep("webhooks", batches)
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from zlib import crc32

from django.db import connection

from lib.worker import shutdown
from workspaces.models import Workspace
from workspaces.plans import PLANS

Batches = Callable[[str, timedelta], Iterator[None]]

# Three quarters of the time belong to sending.
REST = 3.0


def sweep(kind: str, batches: Batches) -> None:
    """Delete what is older than each workspace's plan allows; end early when the process stops.

    Where a sweep of this kind runs already, in any process, nothing is done.
    """
    with _only_one(kind) as is_only:
        plans = Workspace.objects.values_list("id", "plan").order_by("id") if is_only else ()
        for workspace_id, plan in plans:
            if not rested(batches(workspace_id, PLANS[plan].retention)):
                return


def rested(batches: Iterator[None]) -> bool:
    """Run all batches, each followed by a rest of REST times as long; return False when the process stops."""
    started = time.monotonic()
    for _ in batches:
        if shutdown.wait(REST * (time.monotonic() - started)):
            return False
        started = time.monotonic()
    return True


@contextmanager
def _only_one(kind: str) -> Iterator[bool]:
    """Yield whether this is the only one; the lock ends with the connection, however that ends."""
    key = crc32(f"retention of {kind}".encode())
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [key])
        (is_only,) = cursor.fetchone()
    try:
        yield is_only
    finally:
        if is_only and connection.is_usable():
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [key])
