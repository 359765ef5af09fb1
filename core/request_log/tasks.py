"""Task that bounds the request log. A run may be lost or duplicated."""

from collections.abc import Iterator
from typing import Any

from celery import shared_task
from django.db import connection

from core.lib.ids import to_uuid
from core.workspaces.models import Workspace
from core.workspaces.retention import run_batches

RETENTION_DAYS = 7
# Requests of one workspace; a list with filters reads all of them.
MAX_REQUESTS = 100_000
BATCH_SIZE = 5_000
# Ids begin with the second of the request, in four bytes.
DELETE_OLD = """
DELETE FROM request_log_apirequest WHERE id IN (
    SELECT id FROM request_log_apirequest
     WHERE id < (lpad(to_hex(extract(epoch FROM now() - make_interval(days => %s))::bigint), 8, '0')
                 || repeat('0', 24))::uuid
     ORDER BY id LIMIT %s)
"""
DELETE_EXCESS = """
DELETE FROM request_log_apirequest WHERE id IN (
    SELECT id FROM request_log_apirequest WHERE workspace_id = %s ORDER BY id DESC OFFSET %s LIMIT %s)
"""


@shared_task(name="request_log.tasks.expire", ignore_result=True)
def expire() -> None:
    """Delete requests older than RETENTION_DAYS, and those beyond MAX_REQUESTS of a workspace."""
    run_batches(delete_old()) and run_batches(delete_excess())


def delete_old() -> Iterator[None]:
    """Delete old requests of all workspaces; yield after each batch."""
    while _delete(DELETE_OLD, RETENTION_DAYS, BATCH_SIZE):
        yield


def delete_excess() -> Iterator[None]:
    """Delete the oldest requests of workspaces that have too many; yield after each batch."""
    for workspace_id in Workspace.objects.values_list("id", flat=True):
        while _delete(DELETE_EXCESS, to_uuid(workspace_id, prefix="ws_"), MAX_REQUESTS, BATCH_SIZE):
            yield


def _delete(sql: str, *values: Any) -> bool:
    """Delete a batch; return whether another one may follow."""
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return int(cursor.rowcount) == BATCH_SIZE
