"""The queue's moves; every statement is short, time is the database's.

ready → leased by `claim`, leased → waiting or gone by webhooks.sending.outcomes, and what has become due → ready by `promote`.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import connection

from lib.ids import from_uuid, to_uuid
from lib.worker.leases import LEASE_SECONDS
from webhooks.sending.endpoint_shares import FIRST_PACE, SLOW_PACE, EndpointShare, deal, open_lanes

# How many endpoints a claim looks at; those behind have their turn in the next.
LANES = 200
PROMOTE_AT_ONCE = 1000
DISCARD_AT_ONCE = 10_000
FIRST = UUID(int=0)

# Endpoints with ready work that may have more under way, by a loose index scan: ten thousand deliveries of one cost no
# more than its first, and however many are full, the one behind them is found. Each is looked at by itself, LIMIT 1:
# a join could take them in another order than that of their ids, by which the cursor goes on.
LOOK = """
WITH RECURSIVE lane AS (
    (SELECT webhook_id FROM webhooks_pending WHERE stage = 1 AND webhook_id > %(after)s ORDER BY webhook_id LIMIT 1)
    UNION ALL
    SELECT further.webhook_id FROM lane CROSS JOIN LATERAL (
        SELECT webhook_id FROM webhooks_pending
         WHERE stage = 1 AND webhook_id > lane.webhook_id ORDER BY webhook_id LIMIT 1) further
)
SELECT * FROM (
    SELECT lane.webhook_id, w.active, w.pace, w.pace - held.leased AS room
      FROM lane
      LEFT JOIN LATERAL (SELECT active, pace FROM webhooks_webhook WHERE id = lane.webhook_id LIMIT 1) w ON true
      CROSS JOIN LATERAL (
        SELECT count(*) AS leased FROM webhooks_pending p WHERE p.stage = 2 AND p.webhook_id = lane.webhook_id) held
     WHERE w.active IS NOT TRUE OR (w.pace > held.leased AND w.pace >= %(least_pace)s)
     LIMIT %(lanes)s) looked
 ORDER BY webhook_id
"""
TAKE = """
WITH picked AS MATERIALIZED (
    SELECT row.delivery_id FROM unnest(%s::uuid[], %s::int[]) AS turn (webhook_id, share) CROSS JOIN LATERAL (
        SELECT delivery_id FROM webhooks_pending
         WHERE stage = 1 AND webhook_id = turn.webhook_id
         ORDER BY due_at LIMIT turn.share FOR UPDATE SKIP LOCKED) row
)
UPDATE webhooks_pending p
   SET stage = 2, due_at = now() + make_interval(secs => %s), fence = fence + 1, attempts = attempts + 1
  FROM picked WHERE p.delivery_id = picked.delivery_id
RETURNING p.delivery_id, p.webhook_id, p.fence, p.attempts
"""
WIRE_TIME = 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'
# The log keeps the last attempts only.
LOG = "(CASE WHEN jsonb_array_length(d.attempts) >= 20 THEN d.attempts - 0 ELSE d.attempts END)"
RENEW = """
UPDATE webhooks_pending p SET due_at = now() + make_interval(secs => %s)
  FROM unnest(%s::uuid[], %s::int[]) AS held (delivery_id, fence)
 WHERE p.delivery_id = held.delivery_id AND p.fence = held.fence AND p.stage = 2
"""
# What is too old ends; what is due becomes ready, keeping the moment at which it became due, for the lag is counted
# from there; an attempt that was lost with its worker is written down: what the receiver saw of it is unknown.
PROMOTE = f"""
WITH old AS (
    SELECT delivery_id FROM webhooks_pending WHERE expires_at <= now() AND stage <> 2
     ORDER BY expires_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
), ended AS (
    DELETE FROM webhooks_pending p USING old WHERE p.delivery_id = old.delivery_id RETURNING p.delivery_id
), exhausted AS (
    UPDATE webhooks_webhookdelivery d SET status = 'exhausted' FROM ended WHERE d.id = ended.delivery_id
), due AS (
    SELECT delivery_id, stage FROM webhooks_pending
     WHERE stage IN (0, 2) AND due_at <= now() AND (stage = 2 OR expires_at > now())
     ORDER BY due_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
), ready AS (
    UPDATE webhooks_pending p SET stage = 1 FROM due WHERE p.delivery_id = due.delivery_id
)
UPDATE webhooks_webhookdelivery d
   SET attempt_count = d.attempt_count + 1, status_code = NULL, error = 'worker_lost',
       attempts = {LOG} || jsonb_build_object(
           'at', to_char(now() AT TIME ZONE 'UTC', '{WIRE_TIME}'),
           'durationMs', NULL, 'statusCode', NULL, 'error', 'worker_lost', 'answer', NULL)
  FROM due WHERE d.id = due.delivery_id AND due.stage = 2
"""  # noqa: S608 - constants
END = """
WITH gone AS (
    SELECT delivery_id FROM webhooks_pending WHERE {rows} ORDER BY delivery_id LIMIT %(limit)s FOR UPDATE
), freed AS (
    DELETE FROM webhooks_pending p USING gone WHERE p.delivery_id = gone.delivery_id RETURNING p.delivery_id
)
UPDATE webhooks_webhookdelivery d SET status = 'discarded' FROM freed WHERE d.id = freed.delivery_id
"""
OF_WEBHOOK = END.format(rows="stage IN (0, 1, 2) AND webhook_id = %(webhook)s")
# What was announced while its endpoint was being turned off, or deleted.
LEFT_OVER = END.format(
    rows="stage = 1 AND webhook_id = ANY(%(webhooks)s) AND NOT (by_hand AND EXISTS ("
    "SELECT FROM webhooks_webhook w WHERE w.id = webhook_id))"
)
LAG = """
WITH RECURSIVE lane AS (
    (SELECT webhook_id, due_at FROM webhooks_pending WHERE stage = 1 ORDER BY webhook_id, due_at LIMIT 1)
    UNION ALL
    SELECT further.webhook_id, further.due_at FROM lane CROSS JOIN LATERAL (
        SELECT webhook_id, due_at FROM webhooks_pending
         WHERE stage = 1 AND webhook_id > lane.webhook_id ORDER BY webhook_id, due_at LIMIT 1) further
), overdue AS (
    (SELECT due_at FROM webhooks_pending WHERE stage IN (0, 2) AND due_at <= now() ORDER BY due_at LIMIT 1)
    UNION ALL
    SELECT due_at FROM lane JOIN webhooks_webhook w ON w.id = lane.webhook_id
     WHERE (SELECT count(*) FROM webhooks_pending p WHERE p.stage = 2 AND p.webhook_id = lane.webhook_id) < w.pace
)
SELECT now() - min(due_at) FROM overdue
"""


@dataclass(frozen=True)
class Claim:
    """A delivery that this process holds for LEASE_SECONDS; the fence tells it from later holders."""

    delivery_id: str
    webhook_id: str
    fence: int
    attempt: int
    is_slow: bool


class Cursor:
    """Where a process's round robin over the endpoints stands; it wraps, so that none is always first."""

    def __init__(self) -> None:
        self.after = FIRST

    def claim(self, limit: int, *, slow_limit: int) -> list[Claim]:
        """Lease up to limit ready deliveries, up to slow_limit of them of slow endpoints."""
        is_fresh = self.after == FIRST
        claims = self._claim(limit, slow_limit=slow_limit)
        if claims or is_fresh:
            return claims
        self.after = FIRST
        return self._claim(limit, slow_limit=slow_limit)

    def _claim(self, limit: int, *, slow_limit: int) -> list[Claim]:
        looked = look(after=self.after, least_pace=SLOW_PACE if slow_limit > 0 else FIRST_PACE)
        lanes = open_lanes(looked, limit=limit, slow_limit=slow_limit)
        self.after = _next_after(looked, lanes, limit)
        return take(lanes, limit=limit)


def _next_after(looked: Sequence[EndpointShare], lanes: Sequence[EndpointShare], limit: int) -> UUID:
    """Return where the next claim goes on: behind the last that had its turn, or from the start again."""
    if len(lanes) == limit:
        return to_uuid(lanes[-1].webhook_id, prefix="wh_")
    return to_uuid(looked[-1].webhook_id, prefix="wh_") if len(looked) == LANES else FIRST


def look(*, after: UUID, least_pace: int) -> list[EndpointShare]:
    """Return up to LANES endpoints with ready work behind `after`; throw away what those that are off still have."""
    rows = _fetch(LOOK, {"after": after, "least_pace": least_pace, "lanes": LANES})
    off = [webhook_id for webhook_id, active, *_ in rows if not active]
    if off:
        _execute(LEFT_OVER, {"webhooks": off, "limit": DISCARD_AT_ONCE})
    return [
        EndpointShare(from_uuid(webhook_id, prefix="wh_"), room, is_slow=pace < FIRST_PACE)
        for webhook_id, _, pace, room in rows
        if pace is not None
    ]


def take(lanes: Sequence[EndpointShare], *, limit: int) -> list[Claim]:
    """Lease ready deliveries of the lanes, dealt out fairly."""
    shares = deal(lanes, limit=limit)
    if not shares:
        return []
    slow = {lane.webhook_id for lane in lanes if lane.is_slow}
    webhooks = [to_uuid(webhook_id, prefix="wh_") for webhook_id in shares]
    rows = _fetch(TAKE, [webhooks, list(shares.values()), LEASE_SECONDS])
    return [_claim(*row, slow=slow) for row in rows]


def _claim(delivery: UUID, webhook: UUID, fence: int, attempt: int, *, slow: Collection[str]) -> Claim:
    webhook_id = from_uuid(webhook, prefix="wh_")
    return Claim(from_uuid(delivery, prefix="whd_"), webhook_id, fence, attempt, webhook_id in slow)


def promote() -> None:
    """Make what is due ready and end what is too old."""
    _execute(PROMOTE, {"limit": PROMOTE_AT_ONCE})


def discard(webhook_id: str) -> None:
    """End what waits for an endpoint, at once up to DISCARD_AT_ONCE; the claim ends the rest if it is off."""
    _execute(OF_WEBHOOK, {"webhook": to_uuid(webhook_id, prefix="wh_"), "limit": DISCARD_AT_ONCE})


def renew(claims: Collection[Claim]) -> None:
    """Prolong the leases that are still ours."""
    deliveries = [to_uuid(held.delivery_id, prefix="whd_") for held in claims]
    _execute(RENEW, [LEASE_SECONDS, deliveries, [held.fence for held in claims]])


def lag() -> timedelta | None:
    """Return the age of the oldest delivery that is due, None without one.

    What an endpoint's own limit holds back is not counted: it says nothing of the workers.
    """
    ((age,),) = _fetch(LAG, [])
    return age  # type: ignore[no-any-return]


def _fetch(sql: str, values: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor.fetchall())


def _execute(sql: str, values: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
