"""What whoever runs the service watches: the depth of the queue, its oldest row, what became of attempts."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.conf import settings
from django.db import connection

from analytics import counters
from delivery.bounces.replies import DeliveryStatus
from emails.models import Pending
from emails.queue_stats import Change

# A scan: a million rows take a tenth of a second, once a scrape.
DEPTH = "SELECT stage, count(*) FROM emails_pending GROUP BY stage"
# By a loose index scan, as emails.sending.queue claims; what a suspension holds is late on purpose.
OLDEST = """
WITH RECURSIVE lane AS (
    (SELECT workspace_id, due_at FROM emails_pending WHERE stage = 1 ORDER BY workspace_id, due_at LIMIT 1)
    UNION ALL
    SELECT further.workspace_id, further.due_at FROM lane CROSS JOIN LATERAL (
        SELECT workspace_id, due_at FROM emails_pending
         WHERE stage = 1 AND workspace_id > lane.workspace_id ORDER BY workspace_id, due_at LIMIT 1) further
)
SELECT extract(epoch FROM now() - least(
    (SELECT min(lane.due_at) FROM lane JOIN workspaces_workspace w ON w.id = lane.workspace_id
      WHERE w.suspended_at IS NULL),
    (SELECT min(due_at) FROM emails_pending WHERE stage IN (0, 2, 3) AND due_at <= now())))::float
"""
HELD = "SELECT EXISTS (SELECT FROM emails_pending WHERE stage = 2 AND due_at > now())"
PREFIX = "outcome"


@dataclass(frozen=True)
class Outcomes:
    """How many attempts ended so, since the service began; reason is empty for a success."""

    transport: str
    verdict: str
    reason: str
    count: int


def outcome(verdict: DeliveryStatus, reason: str) -> Change:
    """Count an attempt for `/metrics`; all three parts of the key come from small sets."""
    key = f"{PREFIX}.{settings.DELIVERY_TRANSPORT}.{verdict.value}.{reason}"
    return counters.CounterKey(counters.SERVICE, counters.ALL_TIME, key), 1


def outcomes() -> Iterator[Outcomes]:
    for key, count in sorted(counters.since_ever(counters.SERVICE).items()):
        kind, _, rest = key.partition(".")
        if kind == PREFIX:
            transport, verdict, reason = rest.split(".", 2)
            yield Outcomes(transport, verdict, reason, count)


def depth() -> dict[str, int]:
    """Count the queue's rows by stage: waiting, ready, leased, scheduled."""
    with connection.cursor() as cursor:
        cursor.execute(DEPTH)
        found = dict(cursor.fetchall())
    return {stage.name.lower(): found.get(stage.value, 0) for stage in Pending.Stage}


def oldest_due_seconds() -> float:
    """Return for how long the row that is due longest has been due; 0 when none is."""
    with connection.cursor() as cursor:
        cursor.execute(OLDEST)
        (seconds,) = cursor.fetchone()
    return max(float(seconds or 0), 0.0)


def is_sending() -> bool:
    """Tell whether a living worker holds something."""
    with connection.cursor() as cursor:
        cursor.execute(HELD)
        return bool(cursor.fetchone()[0])
