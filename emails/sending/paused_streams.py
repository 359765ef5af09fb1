"""Emails of paused streams: held in the queue, and released when the stream is resumed (docs/decisions/0184).

A held entry is neither claimed nor promoted, so a million of them cost nothing until they are released.
"""

from collections.abc import Sequence

from django.db import transaction

from core.counters import counters
from core.lib.ids import from_uuid, to_uuid
from core.lib.sql import run_replanned
from core.lib.worker.stages import Stage
from emails import queue_stats
from emails.sending.jobs import SendJob
from emails.sending.queue import FORGET_UNASSIGNED, QUEUE
from streams.models import NORMAL_RANK, Stream

# In one statement.
BATCH_SIZE = 1000
# The rank is the number of the stream, so that its entries are found without reading emails.
HOLD = f"stage = {Stage.HELD}, due_at = now(), rank = %(number)s, parked = 0"
# Of the entries that would be claimed next. Workers that hold others of them meanwhile do not wait.
HOLD_NEXT = f"""
WITH next AS (
    SELECT recipient_id FROM emails_pending
     WHERE stage = {Stage.READY} AND workspace_id = %(workspace)s AND rank = %(rank)s
     ORDER BY due_at LIMIT {BATCH_SIZE} FOR UPDATE SKIP LOCKED
)
UPDATE emails_pending p SET {HOLD} WHERE p.recipient_id IN (
    SELECT r.id FROM next
      JOIN emails_recipient r ON r.id = next.recipient_id JOIN emails_email e ON e.id = r.email_id
     WHERE e.stream = %(stream)s)
RETURNING p.workspace_id
"""  # noqa: S608 - constants
RANKS = " ".join(f"WHEN '{priority}' THEN {rank}" for rank, priority in enumerate(Stream.Priority.values))
# The streams with held entries by a loose index scan, then the entries of those that are not paused any more. The time
# that an entry was held does not count towards its age.
RELEASE = f"""
WITH RECURSIVE held AS (
    (SELECT workspace_id, rank FROM emails_pending
      WHERE stage = {Stage.HELD} ORDER BY workspace_id, rank LIMIT 1)
    UNION ALL
    SELECT further.* FROM held CROSS JOIN LATERAL (
        SELECT workspace_id, rank FROM emails_pending
         WHERE stage = {Stage.HELD} AND (workspace_id, rank) > (held.workspace_id, held.rank)
         ORDER BY workspace_id, rank LIMIT 1) further
), released AS (
    SELECT entry.recipient_id, CASE s.priority {RANKS} ELSE {NORMAL_RANK} END AS rank
      FROM held LEFT JOIN streams_stream s ON s.workspace_id = held.workspace_id AND s.number = held.rank
           CROSS JOIN LATERAL (
               SELECT recipient_id FROM emails_pending
                WHERE stage = {Stage.HELD} AND workspace_id = held.workspace_id AND rank = held.rank
                ORDER BY due_at LIMIT {BATCH_SIZE} FOR UPDATE SKIP LOCKED) entry
     WHERE s.paused_at IS NULL LIMIT {BATCH_SIZE}
)
UPDATE emails_pending p
   SET stage = {Stage.READY}, since = p.since + (now() - p.due_at), due_at = now(), rank = released.rank
  FROM released WHERE p.recipient_id = released.recipient_id
RETURNING p.workspace_id
"""  # noqa: S608 - constants


def hold_paused(jobs: Sequence[SendJob]) -> list[SendJob]:
    """Hold the jobs of paused streams and the next ready entries of these streams; return the other jobs."""
    paused: dict[Stream, list[SendJob]] = {}
    for job in jobs:
        if job.properties and job.properties.paused_at:
            paused.setdefault(job.properties, []).append(job)
    if paused:
        with transaction.atomic():
            for stream, held in paused.items():
                _hold(stream, held)
    return [job for job in jobs if job.properties not in paused]


def release_resumed() -> list[str]:
    """Make held entries of resumed streams ready, up to BATCH_SIZE; return the workspace of each."""
    return [from_uuid(workspace, prefix="ws_") for (workspace,) in run_replanned(RELEASE, {})]


def _hold(stream: Stream, jobs: Sequence[SendJob]) -> None:
    """Hold jobs of a stream, without using an attempt, and its next entries."""
    claims = [job.claim for job in jobs]
    changes = f"{HOLD}, attempts = attempts - 1{FORGET_UNASSIGNED}"
    held = QUEUE.update_leased(claims, changes, number=stream.number)
    values = {
        "workspace": to_uuid(stream.workspace_id, prefix="ws_"),
        "stream": stream.slug,
        "rank": stream.rank,
        "number": stream.number,
    }
    further = run_replanned(HOLD_NEXT, values)
    counters.add(queue_stats.delayed_changes([stream.workspace_id] * (len(held) + len(further))))
