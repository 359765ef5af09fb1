"""Queue operations on `emails_pending`: claim, renew, park, release and promote.

Each is a single statement and uses the database's clock. `claim` moves entries from ready to leased;
emails.sending.outcomes, `park` and `release` move them from leased to waiting, or delete them; `promote` moves due
entries to ready: schedules, retries and the expired leases of dead workers.
See docs/decisions/0005 for why the queue is a separate table.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from lib.ids import from_uuid, to_uuid
from lib.sql import run_replanned
from lib.worker.leases import LEASE_SECONDS

PROMOTE_BATCH_SIZE = 1000
# An entry whose claims end three times without an outcome probably kills its workers.
MAX_LOST_CLAIMS = 3
# Entries leased together with such an entry are retried at random times, so that only the bad one fails again.
SPREAD_SECONDS = 60

# A round robin over the workspaces with ready entries, found by a loose index scan. A workspace with a million entries
# gets no larger share of a claim than one with ten, and a workspace that uses its cap of sessions gets none.
# Each workspace is read separately, LIMIT 1: a join could return them in another order than by id, which the cursor
# relies on, and would read all of them first. So would a sort: 40 ms for ten thousand workspaces.
# Locked rows do not move, so their ctid finds them without an index lookup.
CLAIM = """
WITH RECURSIVE ready AS (
    (SELECT workspace_id FROM emails_pending WHERE stage = 1 AND workspace_id > %(after)s ORDER BY 1 LIMIT 1)
    UNION ALL
    SELECT next_ready.workspace_id FROM ready CROSS JOIN LATERAL (
        SELECT workspace_id FROM emails_pending
         WHERE stage = 1 AND workspace_id > ready.workspace_id ORDER BY 1 LIMIT 1) next_ready
), shares AS (
    SELECT workspace_id, least(remaining, (%(limit)s + count(*) OVER () - 1) / count(*) OVER ()) AS share
      FROM (SELECT ready.workspace_id, coalesce(used.remaining, %(cap)s) AS remaining
              FROM ready
              CROSS JOIN LATERAL (SELECT suspended_at FROM workspaces_workspace WHERE id = ready.workspace_id LIMIT 1) w
              LEFT JOIN LATERAL (
                SELECT remaining FROM unnest(%(in_flight)s::uuid[], %(remaining)s::int[]) AS u (workspace_id, remaining)
                 WHERE u.workspace_id = ready.workspace_id LIMIT 1) used ON true
             WHERE w.suspended_at IS NULL AND coalesce(used.remaining, %(cap)s) > 0
               AND NOT EXISTS (SELECT FROM emails_hold) LIMIT %(limit)s) unsuspended
), picked AS MATERIALIZED (
    SELECT row.place FROM shares CROSS JOIN LATERAL (
        SELECT ctid AS place FROM emails_pending
         WHERE stage = 1 AND workspace_id = shares.workspace_id
         ORDER BY due_at LIMIT shares.share FOR UPDATE SKIP LOCKED) row
     LIMIT %(limit)s
)
UPDATE emails_pending p
   SET stage = 2, due_at = now() + make_interval(secs => %(lease)s), fence = fence + 1, attempts = attempts + 1
 WHERE p.ctid = ANY (ARRAY(SELECT place FROM picked))
RETURNING (SELECT count(*) FROM shares), p.recipient_id, p.workspace_id, p.fence, p.attempts, p.since, p.lost
"""
# An expired lease ends the attempt: the entry is ready at once; the second time after a random delay; the third time
# it is leased to this process, which records its failure.
PROMOTE = """
WITH due AS (
    SELECT recipient_id, stage, stage = 2 AND lost + 1 >= %(most)s AS is_given_up FROM emails_pending
     WHERE stage IN (0, 2, 3) AND due_at <= now() ORDER BY due_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
)
UPDATE emails_pending p
   SET stage = CASE WHEN is_given_up THEN 2 WHEN due.stage = 2 AND lost > 0 THEN 0 ELSE 1 END,
       due_at = now() + make_interval(secs => CASE WHEN is_given_up THEN %(lease)s
                WHEN due.stage = 2 AND lost > 0 THEN random() * %(spread)s ELSE 0 END),
       fence = CASE WHEN is_given_up THEN fence + 1 ELSE fence END,
       lost = CASE WHEN due.stage = 2 THEN lost + 1 ELSE lost END
  FROM due WHERE p.recipient_id = due.recipient_id
RETURNING due.stage, p.stage, p.recipient_id, p.workspace_id, p.fence, p.attempts, p.since, p.lost
"""
# A parked entry was not attempted. The delay doubles each time.
PARK = """
UPDATE emails_pending p
   SET stage = 0, due_at = now() + make_interval(secs => least(2 ^ (p.parked + 1), 60)),
       attempts = p.attempts - 1, parked = least(p.parked + 1, 6)
  FROM unnest(%s::uuid[], %s::int[]) AS claimed (recipient_id, fence)
 WHERE p.recipient_id = claimed.recipient_id AND p.fence = claimed.fence AND p.stage = 2
RETURNING p.workspace_id
"""
RELEASE = """
UPDATE emails_pending p SET stage = 0, due_at = now() + make_interval(secs => %s), attempts = p.attempts - 1
  FROM unnest(%s::uuid[], %s::int[]) AS claimed (recipient_id, fence)
 WHERE p.recipient_id = claimed.recipient_id AND p.fence = claimed.fence AND p.stage = 2
RETURNING p.workspace_id
"""
RENEW = """
UPDATE emails_pending p SET due_at = now() + make_interval(secs => %s)
  FROM unnest(%s::uuid[], %s::int[]) AS claimed (recipient_id, fence)
 WHERE p.recipient_id = claimed.recipient_id AND p.fence = claimed.fence AND p.stage = 2
"""
FIRST = UUID(int=0)
NONE_IN_FLIGHT: Mapping[str, int] = {}


@dataclass(frozen=True)
class EmailClaim:
    """A recipient leased to this process for LEASE_SECONDS; the fence distinguishes it from later leases.

    attempt: number of this attempt, from 1. lost: consecutive earlier claims that ended without an outcome.
    """

    recipient_id: str
    workspace_id: str
    fence: int
    attempt: int
    since: datetime
    lost: int = 0


@dataclass(frozen=True)
class PromotedEntry:
    """A due entry, with its stage before and after. One that is LEASED afterwards must be recorded as failed."""

    from_stage: int
    to_stage: int
    claim: EmailClaim


class EmailQueueCursor:
    """The position of a process's round robin over workspaces; it wraps, so that no workspace is always first."""

    def __init__(self) -> None:
        self.after = FIRST

    def claim(
        self, limit: int, *, cap: int | None = None, in_flight: Mapping[str, int] = NONE_IN_FLIGHT
    ) -> list[EmailClaim]:
        """Lease up to limit ready entries; see `claim`."""
        began_after = self.after
        claims = self._claim(limit, cap, in_flight)
        if len(claims) < limit and began_after != FIRST:
            self.after = FIRST
            now_in_flight = Counter(in_flight) + Counter(claim.workspace_id for claim in claims)
            claims += self._claim(limit - len(claims), cap, now_in_flight)
        return claims

    def _claim(self, limit: int, cap: int | None, in_flight: Mapping[str, int]) -> list[EmailClaim]:
        claims, workspaces = _claim_entries(limit, after=self.after, cap=cap, in_flight=in_flight)
        served = {claim.workspace_id for claim in claims}
        # If every workspace with ready entries got a share, start again.
        is_complete_round = len(served) == workspaces < limit
        self.after = FIRST if is_complete_round else max(to_uuid(id_, prefix="ws_") for id_ in served)
        return claims


def claim(
    limit: int, *, after: UUID, cap: int | None = None, in_flight: Mapping[str, int] = NONE_IN_FLIGHT
) -> list[EmailClaim]:
    """Lease up to limit ready entries of the workspaces with an id above `after`, in equal shares.

    cap: entries of one workspace that this process may have in flight. in_flight: the current number, by workspace.
    """
    claims, _ = _claim_entries(limit, after=after, cap=cap, in_flight=in_flight)
    return claims


def _claim_entries(
    limit: int, *, after: UUID, cap: int | None, in_flight: Mapping[str, int]
) -> tuple[list[EmailClaim], int]:
    """Return the claims and the number of workspaces with ready entries (at most limit)."""
    rows = run_replanned(CLAIM, claim_parameters(limit, after=after, cap=cap, in_flight=in_flight))
    return [_email_claim(*row) for _, *row in rows], rows[0][0] if rows else 0


def claim_parameters(limit: int, *, after: UUID, cap: int | None, in_flight: Mapping[str, int]) -> dict[str, Any]:
    """Return the parameters of CLAIM."""
    most = limit if cap is None else cap
    return {
        "limit": limit,
        "after": after,
        "lease": LEASE_SECONDS,
        "cap": most,
        "in_flight": [to_uuid(workspace_id, prefix="ws_") for workspace_id in in_flight],
        "remaining": [most if cap is None else max(cap - count, 0) for count in in_flight.values()],
    }


def promote() -> list[PromotedEntry]:
    """Make due entries ready, and lease those that reached MAX_LOST_CLAIMS so that they can be failed."""
    values = {"limit": PROMOTE_BATCH_SIZE, "most": MAX_LOST_CLAIMS, "lease": LEASE_SECONDS, "spread": SPREAD_SECONDS}
    return [PromotedEntry(before, after, _email_claim(*row)) for before, after, *row in run_replanned(PROMOTE, values)]


def renew(claims: Collection[EmailClaim]) -> None:
    """Renew the leases that this process still has."""
    _execute(RENEW, [LEASE_SECONDS, *_id_and_fence_columns(claims)])


def park(claims: Collection[EmailClaim]) -> list[str]:
    """Set entries aside whose destination is at its limit: 2 s, doubling to 60 s. No attempt is used.

    Returns the workspace of each entry whose lease this process still had.
    """
    return _updated_workspaces(PARK, _id_and_fence_columns(claims))


def release(claims: Collection[EmailClaim], *, seconds: float) -> list[str]:
    """Give leases back for `seconds` when memory is full. No attempt is used. Returns the same as `park`."""
    return _updated_workspaces(RELEASE, [seconds, *_id_and_fence_columns(claims)])


def _updated_workspaces(sql: str, values: Sequence[Any]) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return [from_uuid(workspace, prefix="ws_") for (workspace,) in cursor.fetchall()]


def _email_claim(recipient: UUID, workspace: UUID, *rest: Any) -> EmailClaim:
    return EmailClaim(from_uuid(recipient), from_uuid(workspace, prefix="ws_"), *rest)


def _execute(sql: str, values: Sequence[Any]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)


def _id_and_fence_columns(claims: Collection[EmailClaim]) -> tuple[list[UUID], list[int]]:
    return [to_uuid(claim.recipient_id) for claim in claims], [claim.fence for claim in claims]
