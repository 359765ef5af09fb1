"""Delete caught mail that is older than the plan keeps logs."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.db import connection

from inbound.inbox.models import CaughtMail
from lib.ids import to_uuid
from workspaces.plans import PLANS

AT_ONCE = 200
# A message may have megabytes; few are deleted at once.
DELETE = """
DELETE FROM inbox_caughtmail WHERE id IN (
    SELECT id FROM inbox_caughtmail WHERE workspace_id IS NOT DISTINCT FROM %(workspace)s
       AND received_at < now() - %(age)s ORDER BY received_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED)
"""
# What the service writes itself belongs to no plan.
OWN_AGE = PLANS["free"].retention


def expired_mail(workspace_id: str, age: timedelta) -> Iterator[None]:
    """Delete a workspace's caught mail that is older than `age`; yield after each batch."""
    return _batches(workspace=to_uuid(workspace_id, prefix="ws_"), age=age)


def expired_own_mail() -> Iterator[None]:
    return _batches(workspace=None, age=OWN_AGE)


def _batches(**values: Any) -> Iterator[None]:
    deleted = AT_ONCE
    while deleted == AT_ONCE:
        with connection.cursor() as cursor:
            cursor.execute(DELETE, {"limit": AT_ONCE, **values})
            deleted = cursor.rowcount
        yield


def erase_mail(address: str) -> None:
    """Delete what was caught for an address, whoever has sent it."""
    CaughtMail.objects.filter(recipient__iexact=address).delete()
