"""Delivery metrics for operators: the queue depth, the age of the oldest due entry, and outcomes of attempts."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.conf import settings
from django.db import connection

from analytics import counters
from delivery.bounces.replies import DeliveryStatus
from emails.models import QueueEntry

# A table scan, once per scrape: 0.1 s for a million rows.
QUEUE_DEPTH = "SELECT stage, count(*) FROM emails_pending GROUP BY stage"
# A loose index scan, as in emails.sending.queue. Entries of suspended workspaces do not count as late.
OLDEST_DUE = """
WITH RECURSIVE oldest AS (
    (SELECT workspace_id, due_at FROM emails_pending WHERE stage = 1 ORDER BY workspace_id, due_at LIMIT 1)
    UNION ALL
    SELECT next_oldest.workspace_id, next_oldest.due_at FROM oldest CROSS JOIN LATERAL (
        SELECT workspace_id, due_at FROM emails_pending
         WHERE stage = 1 AND workspace_id > oldest.workspace_id ORDER BY workspace_id, due_at LIMIT 1) next_oldest
)
SELECT extract(epoch FROM now() - least(
    (SELECT min(oldest.due_at) FROM oldest JOIN workspaces_workspace w ON w.id = oldest.workspace_id
      WHERE w.suspended_at IS NULL),
    (SELECT min(due_at) FROM emails_pending WHERE stage IN (0, 2, 3) AND due_at <= now())))::float
"""
HAS_LEASED = "SELECT EXISTS (SELECT FROM emails_pending WHERE stage = 2 AND due_at > now())"
PREFIX = "outcome"


@dataclass(frozen=True)
class OutcomeCount:
    """The all-time number of attempts with one status and reason. reason: empty for a success."""

    transport: str
    status: str
    reason: str
    count: int


def outcome_change(status: DeliveryStatus, reason: str) -> counters.CounterChange:
    """Return the counter change of one attempt for `/metrics`. All parts of the key come from small sets."""
    key = f"{PREFIX}.{settings.DELIVERY_TRANSPORT}.{status.value}.{reason}"
    return counters.CounterKey(counters.SERVICE, counters.ALL_TIME, key), 1


def read_outcome_counts() -> Iterator[OutcomeCount]:
    """Yield the all-time outcome counts of this installation."""
    for key, count in sorted(counters.all_time_counts(counters.SERVICE).items()):
        kind, _, rest = key.partition(".")
        if kind == PREFIX:
            transport, status, reason = rest.split(".", 2)
            yield OutcomeCount(transport, status, reason, count)


def queue_depth() -> dict[str, int]:
    """Return the number of queue entries by stage: waiting, ready, leased, scheduled."""
    with connection.cursor() as cursor:
        cursor.execute(QUEUE_DEPTH)
        counts = dict(cursor.fetchall())
    return {stage.name.lower(): counts.get(stage.value, 0) for stage in QueueEntry.QueueStage}


def oldest_due_seconds() -> float:
    """Return the seconds since the oldest due entry became due, or 0 if no entry is due."""
    with connection.cursor() as cursor:
        cursor.execute(OLDEST_DUE)
        (seconds,) = cursor.fetchone()
    return max(float(seconds or 0), 0.0)


def is_sending() -> bool:
    """Return whether a live worker has leased entries."""
    with connection.cursor() as cursor:
        cursor.execute(HAS_LEASED)
        return bool(cursor.fetchone()[0])
