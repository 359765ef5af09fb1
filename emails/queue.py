"""The queue's moves. Every one is a single statement; time is the database's.

ready → leased by `claim`, leased → waiting or gone by emails.outcomes, and everything that has become due
→ ready by `promote`: schedules, retries and the leases of workers that died.
See docs/decisions/0005 for why this is a table of its own.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import connection

from drain.leases import LEASE_SECONDS
from keys.ids import from_uuid, to_uuid

PROMOTE_AT_ONCE = 1000

# A round robin over the workspaces that have ready work, found by a loose index scan; a workspace with a
# million rows gets no larger share of a claim than one with ten.
CLAIM = """
WITH RECURSIVE lane AS (
    (SELECT workspace_id FROM emails_pending WHERE stage = 1 AND workspace_id > %(after)s ORDER BY 1 LIMIT 1)
    UNION ALL
    SELECT further.workspace_id FROM lane CROSS JOIN LATERAL (
        SELECT workspace_id FROM emails_pending
         WHERE stage = 1 AND workspace_id > lane.workspace_id ORDER BY 1 LIMIT 1) further
), turn AS (
    SELECT workspace_id, (%(limit)s + count(*) OVER () - 1) / count(*) OVER () AS share
      FROM (SELECT lane.workspace_id FROM lane JOIN workspaces_workspace w ON w.id = lane.workspace_id
             WHERE w.suspended_at IS NULL LIMIT %(limit)s) open_lane
), picked AS MATERIALIZED (
    SELECT row.recipient_id FROM turn CROSS JOIN LATERAL (
        SELECT recipient_id FROM emails_pending
         WHERE stage = 1 AND workspace_id = turn.workspace_id
         ORDER BY due_at LIMIT turn.share FOR UPDATE SKIP LOCKED) row
     LIMIT %(limit)s
)
UPDATE emails_pending p
   SET stage = 2, due_at = now() + make_interval(secs => %(lease)s), fence = fence + 1, attempts = attempts + 1
  FROM picked WHERE p.recipient_id = picked.recipient_id
RETURNING p.recipient_id, p.workspace_id, p.fence, p.attempts, p.since
"""
PROMOTE = """
WITH due AS (
    SELECT recipient_id, stage FROM emails_pending
     WHERE stage IN (0, 2, 3) AND due_at <= now() ORDER BY due_at LIMIT %s FOR UPDATE SKIP LOCKED
)
UPDATE emails_pending p SET stage = 1, due_at = now() FROM due WHERE p.recipient_id = due.recipient_id
RETURNING p.recipient_id, due.stage, p.workspace_id
"""
RENEW = """
UPDATE emails_pending p SET due_at = now() + make_interval(secs => %s)
  FROM unnest(%s::uuid[], %s::int[]) AS held (recipient_id, fence)
 WHERE p.recipient_id = held.recipient_id AND p.fence = held.fence AND p.stage = 2
"""
FIRST = UUID(int=0)


@dataclass(frozen=True)
class Claim:
    """A recipient that this process holds for LEASE_SECONDS; the fence tells it from later holders."""

    recipient_id: str
    workspace_id: str
    fence: int
    attempt: int
    since: datetime


class Cursor:
    """Where a process's round robin stands; it wraps, so that no workspace is always first."""

    def __init__(self) -> None:
        self.after = FIRST

    def claim(self, limit: int) -> list[Claim]:
        """Lease up to limit ready rows."""
        claims = claim(limit, after=self.after)
        if len(claims) < limit and self.after != FIRST:
            claims += claim(limit - len(claims), after=FIRST)
        last = max((to_uuid(held.workspace_id, prefix="ws_") for held in claims), default=FIRST)
        self.after = last
        return claims


def claim(limit: int, *, after: UUID) -> list[Claim]:
    """Lease up to limit ready rows of the workspaces behind `after`, in equal shares."""
    with connection.cursor() as cursor:
        cursor.execute(CLAIM, {"limit": limit, "after": after, "lease": LEASE_SECONDS})
        return [
            Claim(from_uuid(recipient), from_uuid(workspace, prefix="ws_"), fence, attempt, since)
            for recipient, workspace, fence, attempt, since in cursor.fetchall()
        ]


def promote() -> list[tuple[str, int, str]]:
    """Make what is due ready; return (recipient id, stage that it was in, workspace id) for each row."""
    with connection.cursor() as cursor:
        cursor.execute(PROMOTE, [PROMOTE_AT_ONCE])
        return [
            (from_uuid(recipient), stage, from_uuid(workspace, prefix="ws_"))
            for recipient, stage, workspace in cursor.fetchall()
        ]


def renew(claims: Collection[Claim]) -> None:
    """Prolong the leases that are still ours."""
    with connection.cursor() as cursor:
        cursor.execute(RENEW, [LEASE_SECONDS, *_keys(claims)])


def _keys(claims: Collection[Claim]) -> Sequence[list[UUID] | list[int]]:
    return [to_uuid(held.recipient_id) for held in claims], [held.fence for held in claims]
