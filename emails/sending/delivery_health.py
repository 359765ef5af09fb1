"""Delivery metrics for operators: the queue depth, the age of the oldest due entry, and outcomes of attempts."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.conf import settings

from counters import counters
from delivery.bounces.replies import DeliveryStatus
from emails.sending.queue import QUEUE
from lib.sql import run
from lib.worker.lease_queue import FIRST
from lib.worker.stages import Stage

# A table scan, once per scrape: 0.1 s for a million rows.
QUEUE_DEPTH = "SELECT stage, count(*) FROM emails_pending GROUP BY stage"
# Entries of suspended and deleted workspaces do not count as late.
OLDEST_DUE = f"""
WITH RECURSIVE {QUEUE.ready_groups}
SELECT extract(epoch FROM now() - least(
    (SELECT min(ready.due_at) FROM ready JOIN workspaces_workspace w ON w.id = ready.workspace_id
      WHERE w.suspended_at IS NULL AND w.deletes_at IS NULL),
    (SELECT min(due_at) FROM emails_pending WHERE {QUEUE.is_due})))::float
"""  # noqa: S608 - constants
HAS_LEASED = f"SELECT EXISTS (SELECT FROM emails_pending WHERE stage = {Stage.LEASED} AND due_at > now())"  # noqa: S608
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
    counts = dict(run(QUEUE_DEPTH))
    return {stage.name.lower(): counts.get(stage.value, 0) for stage in Stage}


def oldest_due_seconds() -> float:
    """Return the seconds since the oldest due entry became due, or 0 if no entry is due."""
    ((seconds,),) = run(OLDEST_DUE, {"after": FIRST})
    return max(float(seconds or 0), 0.0)


def is_sending() -> bool:
    """Return whether a live worker has leased entries."""
    return bool(run(HAS_LEASED)[0][0])
