"""Celery tasks of the event feed. They take no arguments and may be lost or run twice."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from celery import shared_task

from core.lib.ids import to_uuid
from core.lib.sql import delete_batches
from core.workspaces.retention import sweep

EXPIRE_BATCH = 5000
DELETE_ENTRIES = """
DELETE FROM events_feedentry WHERE workspace_id = %(workspace)s AND recorded_at < now() - %(age)s AND position IN (
    SELECT position FROM events_feedentry WHERE workspace_id = %(workspace)s ORDER BY position LIMIT %(batch)s)
"""
DELETE_EVENTS = """
DELETE FROM emails_event WHERE number IN (
    SELECT number FROM emails_event
     WHERE workspace_id = %(workspace)s AND email_id IS NULL AND created_at < now() - %(age)s
     ORDER BY created_at LIMIT %(batch)s)
"""
# Rows that migration 0004 copied to the log: a version before 1.0 may read them during the upgrade.
DELETE_FORMER = """
DELETE FROM workspaces_workspaceevent WHERE number IN (
    SELECT number FROM workspaces_workspaceevent WHERE workspace_id = %(workspace)s
       AND created_at < now() - interval '1 day'
       AND number <= (SELECT last FROM events_feedprogress WHERE source = 'former') LIMIT %(batch)s)
"""


@shared_task(name="events.tasks.expire", ignore_result=True)
def expire() -> None:
    """Delete the feed entries and events of the workspace that are past the retention of their plan."""
    sweep("events", delete_expired)


def delete_expired(workspace_id: str, age: timedelta) -> Iterator[None]:
    """Delete a workspace's expired rows; yield after each batch."""
    values: dict[str, Any] = {"workspace": to_uuid(workspace_id, prefix="ws_"), "age": age, "batch": EXPIRE_BATCH}
    for statement in (DELETE_ENTRIES, DELETE_EVENTS, DELETE_FORMER):
        yield from delete_batches(statement, values, size=EXPIRE_BATCH)
