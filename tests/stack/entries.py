"""Queue entries of a running stack, counted and moved by SQL."""

from lib.worker.lease_queue import Stage
from tests.stack.stack import Stack

EMAILS, WEBHOOKS = "emails_pending", "webhooks_pending"


def count_entries(stack: Stack, table: str, stage: Stage) -> int:
    return int(stack.query(f"SELECT count(*) FROM {table} WHERE stage = {stage}")[0][0])


def expire_leases(stack: Stack) -> None:
    """Expire all leases by moving their rows into the past; the clock is not changed."""
    for table in (EMAILS, WEBHOOKS):
        stack.query(f"UPDATE {table} SET due_at = now() - interval '1 s' WHERE stage = {Stage.LEASED} RETURNING 1")
