"""The queue's moves. Every one is a single statement; time is the database's.

ready → leased by `claim`, leased → waiting or gone by emails.sending.outcomes or `park`, and everything that has become
due → ready by `promote`: schedules, retries and the leases of workers that died.
See docs/decisions/0005 for why this is a table of its own.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from lib.ids import from_uuid, to_uuid
from lib.sql import run_planned
from lib.worker.leases import LEASE_SECONDS

PROMOTE_AT_ONCE = 1000
# A row whose claims end three times without an outcome is the likely death of those workers.
LOST_AT_MOST = 3
# What dies with such a row was only its neighbour: apart from each other they find out which one it is.
SPREAD_SECONDS = 60

# A round robin over the workspaces that have ready work, found by a loose index scan; a workspace with a
# million rows gets no larger share of a claim than one with ten, and none that holds its part of our sessions.
# Each lane is looked at by itself, LIMIT 1: a join could take them in another order than that of their ids, by which
# the cursor goes on, and would find all of them first. A sort would, too: 40 ms for ten thousand workspaces.
# Locked rows stay where they are, so that their places find them without a look into an index.
CLAIM = """
WITH RECURSIVE lane AS (
    (SELECT workspace_id FROM emails_pending WHERE stage = 1 AND workspace_id > %(after)s ORDER BY 1 LIMIT 1)
    UNION ALL
    SELECT further.workspace_id FROM lane CROSS JOIN LATERAL (
        SELECT workspace_id FROM emails_pending
         WHERE stage = 1 AND workspace_id > lane.workspace_id ORDER BY 1 LIMIT 1) further
), turn AS (
    SELECT workspace_id, least(room, (%(limit)s + count(*) OVER () - 1) / count(*) OVER ()) AS share
      FROM (SELECT lane.workspace_id, coalesce(busy.room, %(cap)s) AS room
              FROM lane
              CROSS JOIN LATERAL (SELECT suspended_at FROM workspaces_workspace WHERE id = lane.workspace_id LIMIT 1) w
              LEFT JOIN LATERAL (
                SELECT room FROM unnest(%(busy)s::uuid[], %(rooms)s::int[]) AS held (workspace_id, room)
                 WHERE held.workspace_id = lane.workspace_id LIMIT 1) busy ON true
             WHERE w.suspended_at IS NULL AND coalesce(busy.room, %(cap)s) > 0
               AND NOT EXISTS (SELECT FROM emails_hold) LIMIT %(limit)s) open_lane
), picked AS MATERIALIZED (
    SELECT row.place FROM turn CROSS JOIN LATERAL (
        SELECT ctid AS place FROM emails_pending
         WHERE stage = 1 AND workspace_id = turn.workspace_id
         ORDER BY due_at LIMIT turn.share FOR UPDATE SKIP LOCKED) row
     LIMIT %(limit)s
)
UPDATE emails_pending p
   SET stage = 2, due_at = now() + make_interval(secs => %(lease)s), fence = fence + 1, attempts = attempts + 1
 WHERE p.ctid = ANY (ARRAY(SELECT place FROM picked))
RETURNING (SELECT count(*) FROM turn), p.recipient_id, p.workspace_id, p.fence, p.attempts, p.since, p.lost
"""
# The lease of a dead worker ends its row's attempt: ready at once, the second time apart from its neighbours,
# and the third time held once more, by us, to be given up.
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
# A parked row was not tried; the longer it finds no room, the less often it asks.
PARK = """
UPDATE emails_pending p
   SET stage = 0, due_at = now() + make_interval(secs => least(2 ^ (p.parked + 1), 60)),
       attempts = p.attempts - 1, parked = least(p.parked + 1, 6)
  FROM unnest(%s::uuid[], %s::int[]) AS held (recipient_id, fence)
 WHERE p.recipient_id = held.recipient_id AND p.fence = held.fence AND p.stage = 2
RETURNING p.workspace_id
"""
PUT_BACK = """
UPDATE emails_pending p SET stage = 0, due_at = now() + make_interval(secs => %s), attempts = p.attempts - 1
  FROM unnest(%s::uuid[], %s::int[]) AS held (recipient_id, fence)
 WHERE p.recipient_id = held.recipient_id AND p.fence = held.fence AND p.stage = 2
RETURNING p.workspace_id
"""
RENEW = """
UPDATE emails_pending p SET due_at = now() + make_interval(secs => %s)
  FROM unnest(%s::uuid[], %s::int[]) AS held (recipient_id, fence)
 WHERE p.recipient_id = held.recipient_id AND p.fence = held.fence AND p.stage = 2
"""
FIRST = UUID(int=0)
NOBODY: Mapping[str, int] = {}


@dataclass(frozen=True)
class Claim:
    """A recipient that this process holds for LEASE_SECONDS; the fence tells it from later holders.

    attempt: which one this is, from 1. lost: earlier claims in a row that ended without an outcome.
    """

    recipient_id: str
    workspace_id: str
    fence: int
    attempt: int
    since: datetime
    lost: int = 0


@dataclass(frozen=True)
class Promoted:
    """A row that was due, and the stages that it was in and is in now; one to be given up is leased, to us."""

    was: int
    stage: int
    claim: Claim


class Cursor:
    """Where a process's round robin stands; it wraps, so that no workspace is always first."""

    def __init__(self) -> None:
        self.after = FIRST

    def claim(self, limit: int, *, cap: int | None = None, busy: Mapping[str, int] = NOBODY) -> list[Claim]:
        """Lease up to limit ready rows; see `claim`."""
        began_after = self.after
        claims = self._claim(limit, cap, busy)
        if len(claims) < limit and began_after != FIRST:
            self.after = FIRST
            again = Counter(busy) + Counter(held.workspace_id for held in claims)
            claims += self._claim(limit - len(claims), cap, again)
        return claims

    def _claim(self, limit: int, cap: int | None, busy: Mapping[str, int]) -> list[Claim]:
        claims, workspaces = _claimed(limit, after=self.after, cap=cap, busy=busy)
        served = {held.workspace_id for held in claims}
        # Where all of them got something there is nobody to go on with.
        is_round = len(served) == workspaces < limit
        self.after = FIRST if is_round else max(to_uuid(one, prefix="ws_") for one in served)
        return claims


def claim(limit: int, *, after: UUID, cap: int | None = None, busy: Mapping[str, int] = NOBODY) -> list[Claim]:
    """Lease up to limit ready rows of the workspaces behind `after`, in equal shares.

    cap: how many rows of one workspace this process may hold; busy: how many it holds already.
    """
    claims, _ = _claimed(limit, after=after, cap=cap, busy=busy)
    return claims


def _claimed(limit: int, *, after: UUID, cap: int | None, busy: Mapping[str, int]) -> tuple[list[Claim], int]:
    """Return the claims, and how many workspaces had ready work, limit at most."""
    rows = run_planned(CLAIM, claim_values(limit, after=after, cap=cap, busy=busy))
    return [_claim(*row) for _, *row in rows], rows[0][0] if rows else 0


def claim_values(limit: int, *, after: UUID, cap: int | None, busy: Mapping[str, int]) -> dict[str, Any]:
    """Return the values of CLAIM."""
    most = limit if cap is None else cap
    return {
        "limit": limit,
        "after": after,
        "lease": LEASE_SECONDS,
        "cap": most,
        "busy": [to_uuid(workspace_id, prefix="ws_") for workspace_id in busy],
        "rooms": [most if cap is None else max(cap - held, 0) for held in busy.values()],
    }


def promote() -> list[Promoted]:
    """Make what is due ready, and take hold of what is to be given up."""
    values = {"limit": PROMOTE_AT_ONCE, "most": LOST_AT_MOST, "lease": LEASE_SECONDS, "spread": SPREAD_SECONDS}
    return [Promoted(was, stage, _claim(*row)) for was, stage, *row in run_planned(PROMOTE, values)]


def renew(claims: Collection[Claim]) -> None:
    """Prolong the leases that are still ours."""
    _execute(RENEW, [LEASE_SECONDS, *_keys(claims)])


def park(claims: Collection[Claim]) -> list[str]:
    """Let rows wait whose destination had no room: 2 s, doubling to 60 s; no attempt is used.

    Returns the workspace of each row that was still ours.
    """
    return _workspaces(PARK, _keys(claims))


def put_back(claims: Collection[Claim], *, seconds: float) -> list[str]:
    """Let rows wait that this process has no room for; no attempt is used. Returns what park does."""
    return _workspaces(PUT_BACK, [seconds, *_keys(claims)])


def _workspaces(sql: str, values: Sequence[Any]) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return [from_uuid(workspace, prefix="ws_") for (workspace,) in cursor.fetchall()]


def _claim(recipient: UUID, workspace: UUID, *rest: Any) -> Claim:
    return Claim(from_uuid(recipient), from_uuid(workspace, prefix="ws_"), *rest)


def _execute(sql: str, values: Sequence[Any]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)


def _keys(claims: Collection[Claim]) -> tuple[list[UUID], list[int]]:
    return [to_uuid(held.recipient_id) for held in claims], [held.fence for held in claims]
