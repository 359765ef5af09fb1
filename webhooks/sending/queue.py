"""Queue of webhook deliveries: claim, promote, renew, discard. Statements are short and use the database's clock.

`claim` moves ready entries to leased, webhooks.sending.outcomes moves leased ones to waiting or deletes them, and
`promote` makes due entries ready.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import connection

from lib.ids import from_uuid, to_uuid
from lib.worker.leases import LEASE_SECONDS
from webhooks.sending.endpoint_shares import FIRST_PACE, SLOW_PACE, EndpointShare, allocate, limit_shares

# Endpoints that one claim considers; the next claim continues after them.
MAX_ENDPOINTS = 200
PROMOTE_AT_ONCE = 1000
DISCARD_AT_ONCE = 10_000
BEFORE_ALL = UUID(int=0)

# Endpoints with ready deliveries and free slots, by a loose index scan: ten thousand deliveries of one endpoint cost no
# more than its first, and a free endpoint is found behind any number of full ones. Each endpoint is read separately
# with LIMIT 1: a join could return another order than that of the ids, which the cursor depends on.
FIND_ENDPOINTS = """
WITH RECURSIVE endpoint AS (
    (SELECT webhook_id FROM webhooks_pending WHERE stage = 1 AND webhook_id > %(after)s ORDER BY webhook_id LIMIT 1)
    UNION ALL
    SELECT further.webhook_id FROM endpoint CROSS JOIN LATERAL (
        SELECT webhook_id FROM webhooks_pending
         WHERE stage = 1 AND webhook_id > endpoint.webhook_id ORDER BY webhook_id LIMIT 1) further
)
SELECT * FROM (
    SELECT endpoint.webhook_id, w.active, w.pace, w.pace - in_flight.leased AS free_slots
      FROM endpoint
      LEFT JOIN LATERAL (SELECT active, pace FROM webhooks_webhook WHERE id = endpoint.webhook_id LIMIT 1) w ON true
      CROSS JOIN LATERAL (
        SELECT count(*) AS leased FROM webhooks_pending p
         WHERE p.stage = 2 AND p.webhook_id = endpoint.webhook_id) in_flight
     WHERE w.active IS NOT TRUE OR (w.pace > in_flight.leased AND w.pace >= %(least_pace)s)
     LIMIT %(max_endpoints)s) found
 ORDER BY webhook_id
"""
LEASE = """
WITH picked AS MATERIALIZED (
    SELECT row.delivery_id FROM unnest(%s::uuid[], %s::int[]) AS endpoint (webhook_id, share) CROSS JOIN LATERAL (
        SELECT delivery_id FROM webhooks_pending
         WHERE stage = 1 AND webhook_id = endpoint.webhook_id
         ORDER BY due_at LIMIT endpoint.share FOR UPDATE SKIP LOCKED) row
)
UPDATE webhooks_pending p
   SET stage = 2, due_at = now() + make_interval(secs => %s), fence = fence + 1, attempts = attempts + 1
  FROM picked WHERE p.delivery_id = picked.delivery_id
RETURNING p.delivery_id, p.webhook_id, p.fence, p.attempts
"""
WIRE_TIME = 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'
# The log keeps the last 20 attempts.
ATTEMPT_LOG = "(CASE WHEN jsonb_array_length(d.attempts) >= 20 THEN d.attempts - 0 ELSE d.attempts END)"
RENEW = """
UPDATE webhooks_pending p SET due_at = now() + make_interval(secs => %s)
  FROM unnest(%s::uuid[], %s::int[]) AS claim (delivery_id, fence)
 WHERE p.delivery_id = claim.delivery_id AND p.fence = claim.fence AND p.stage = 2
"""
# Expired entries are deleted and their deliveries exhausted. Due entries become ready and keep their due_at, from which
# the lag is measured. An expired lease is logged as a lost attempt: the receiver may or may not have got it.
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
       attempts = {ATTEMPT_LOG} || jsonb_build_object(
           'at', to_char(now() AT TIME ZONE 'UTC', '{WIRE_TIME}'),
           'durationMs', NULL, 'statusCode', NULL, 'error', 'worker_lost', 'answer', NULL)
  FROM due WHERE d.id = due.delivery_id AND due.stage = 2
"""  # noqa: S608 - constants
DISCARD = """
WITH gone AS (
    SELECT delivery_id FROM webhooks_pending WHERE {rows} ORDER BY delivery_id LIMIT %(limit)s FOR UPDATE
), freed AS (
    DELETE FROM webhooks_pending p USING gone WHERE p.delivery_id = gone.delivery_id RETURNING p.delivery_id
)
UPDATE webhooks_webhookdelivery d SET status = 'discarded' FROM freed WHERE d.id = freed.delivery_id
"""
DISCARD_OF_WEBHOOK = DISCARD.format(rows="stage IN (0, 1, 2) AND webhook_id = %(webhook)s")
# Entries of events published while their endpoint was being disabled or deleted.
DISCARD_LEFTOVER = DISCARD.format(
    rows="stage = 1 AND webhook_id = ANY(%(webhooks)s) AND NOT (by_hand AND EXISTS ("
    "SELECT FROM webhooks_webhook w WHERE w.id = webhook_id))"
)
LAG = """
WITH RECURSIVE endpoint AS (
    (SELECT webhook_id, due_at FROM webhooks_pending WHERE stage = 1 ORDER BY webhook_id, due_at LIMIT 1)
    UNION ALL
    SELECT further.webhook_id, further.due_at FROM endpoint CROSS JOIN LATERAL (
        SELECT webhook_id, due_at FROM webhooks_pending
         WHERE stage = 1 AND webhook_id > endpoint.webhook_id ORDER BY webhook_id, due_at LIMIT 1) further
), overdue AS (
    (SELECT due_at FROM webhooks_pending WHERE stage IN (0, 2) AND due_at <= now() ORDER BY due_at LIMIT 1)
    UNION ALL
    SELECT due_at FROM endpoint JOIN webhooks_webhook w ON w.id = endpoint.webhook_id
     WHERE (SELECT count(*) FROM webhooks_pending p WHERE p.stage = 2 AND p.webhook_id = endpoint.webhook_id) < w.pace
)
SELECT now() - min(due_at) FROM overdue
"""


@dataclass(frozen=True)
class WebhookClaim:
    """A delivery leased to this process for LEASE_SECONDS; the fence rejects writes after a later claim."""

    delivery_id: str
    webhook_id: str
    fence: int
    attempt: int
    is_slow: bool


class EndpointCursor:
    """The round-robin position of a process among the endpoints; it wraps, so no endpoint is always first."""

    def __init__(self) -> None:
        self.after = BEFORE_ALL

    def claim(self, limit: int, *, slow_limit: int) -> list[WebhookClaim]:
        """Lease up to limit ready deliveries, at most slow_limit of them for slow endpoints."""
        is_fresh = self.after == BEFORE_ALL
        claims = self._claim(limit, slow_limit=slow_limit)
        if claims or is_fresh:
            return claims
        self.after = BEFORE_ALL
        return self._claim(limit, slow_limit=slow_limit)

    def _claim(self, limit: int, *, slow_limit: int) -> list[WebhookClaim]:
        found = find_endpoints(after=self.after, least_pace=SLOW_PACE if slow_limit > 0 else FIRST_PACE)
        endpoints = limit_shares(found, limit=limit, slow_limit=slow_limit)
        self.after = _next_after(found, endpoints, limit)
        return lease_deliveries(endpoints, limit=limit)


def _next_after(found: Sequence[EndpointShare], endpoints: Sequence[EndpointShare], limit: int) -> UUID:
    """Return the position of the next claim: after the last endpoint served, or the start again."""
    if len(endpoints) == limit:
        return to_uuid(endpoints[-1].webhook_id, prefix="wh_")
    return to_uuid(found[-1].webhook_id, prefix="wh_") if len(found) == MAX_ENDPOINTS else BEFORE_ALL


def find_endpoints(*, after: UUID, least_pace: int) -> list[EndpointShare]:
    """Return up to MAX_ENDPOINTS endpoints with ready deliveries after `after`; discard those of disabled endpoints."""
    rows = _fetch(FIND_ENDPOINTS, {"after": after, "least_pace": least_pace, "max_endpoints": MAX_ENDPOINTS})
    off = [webhook_id for webhook_id, active, *_ in rows if not active]
    if off:
        _execute(DISCARD_LEFTOVER, {"webhooks": off, "limit": DISCARD_AT_ONCE})
    return [
        EndpointShare(from_uuid(webhook_id, prefix="wh_"), free_slots, is_slow=pace < FIRST_PACE)
        for webhook_id, _, pace, free_slots in rows
        if pace is not None
    ]


def lease_deliveries(endpoints: Sequence[EndpointShare], *, limit: int) -> list[WebhookClaim]:
    """Lease ready deliveries, divided equally among the endpoints."""
    shares = allocate(endpoints, limit=limit)
    if not shares:
        return []
    slow = {endpoint.webhook_id for endpoint in endpoints if endpoint.is_slow}
    webhooks = [to_uuid(webhook_id, prefix="wh_") for webhook_id in shares]
    rows = _fetch(LEASE, [webhooks, list(shares.values()), LEASE_SECONDS])
    return [_claim(*row, slow=slow) for row in rows]


def _claim(delivery: UUID, webhook: UUID, fence: int, attempt: int, *, slow: Collection[str]) -> WebhookClaim:
    webhook_id = from_uuid(webhook, prefix="wh_")
    return WebhookClaim(from_uuid(delivery, prefix="whd_"), webhook_id, fence, attempt, webhook_id in slow)


def promote() -> None:
    """Make due entries ready and end expired ones."""
    _execute(PROMOTE, {"limit": PROMOTE_AT_ONCE})


def discard_pending(webhook_id: str) -> None:
    """Discard up to DISCARD_AT_ONCE entries of an endpoint; if it is disabled, later claims discard the rest."""
    _execute(DISCARD_OF_WEBHOOK, {"webhook": to_uuid(webhook_id, prefix="wh_"), "limit": DISCARD_AT_ONCE})


def renew(claims: Collection[WebhookClaim]) -> None:
    """Extend the leases whose fence is still current."""
    deliveries = [to_uuid(claim.delivery_id, prefix="whd_") for claim in claims]
    _execute(RENEW, [LEASE_SECONDS, deliveries, [claim.fence for claim in claims]])


def lag() -> timedelta | None:
    """Return the age of the oldest due delivery, or None without one.

    Deliveries waiting because their endpoint is at its pace are not counted: they say nothing about the workers.
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
