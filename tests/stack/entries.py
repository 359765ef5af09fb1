"""Queue entries of a running stack, counted and moved by SQL."""

from concurrent.futures import ThreadPoolExecutor

from core.lib.worker.stages import Stage
from tests.stack.stack import Stack

EMAILS, WEBHOOKS = "emails_pending", "webhooks_pending"


def send_many(stack: Stack, count: int) -> set[str]:
    """Send emails to as many recipients, several at a time; return the ids."""
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda number: stack.send(to=f"r{number}@example.com"), range(count)))
    assert {answer.status for answer in answers} == {202}
    return {answer.body["id"] for answer in answers}


def count_entries(stack: Stack, table: str, *stages: Stage) -> int:
    """Count the entries in these stages, by default all."""
    wanted = ", ".join(str(stage) for stage in stages or Stage)
    return int(stack.query(f"SELECT count(*) FROM {table} WHERE stage IN ({wanted})")[0][0])


def expire_leases(stack: Stack) -> None:
    """Expire all leases by moving their rows into the past; the clock is not changed."""
    for table in (EMAILS, WEBHOOKS):
        stack.query(f"UPDATE {table} SET due_at = now() - interval '1 s' WHERE stage = {Stage.LEASED} RETURNING 1")
