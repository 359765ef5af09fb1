"""The queue of webhook deliveries, `webhooks_pending`, and its division among endpoints.

A claim moves ready entries to leased, webhooks.sending.outcomes moves leased ones to waiting or deletes them, and
`promote` makes due entries ready.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from core.lib.ids import from_uuid, to_uuid
from core.lib.sql import run
from core.lib.worker.lease_queue import FIRST, Claim, SharedLeaseQueue, Turn
from core.lib.worker.stages import Stage
from webhooks.sending.endpoint_shares import FIRST_PACE, SLOW_PACE, EndpointShare, allocate, limit_shares

# Endpoints that one claim considers; the next claim continues after them.
MAX_ENDPOINTS = 200
PROMOTE_AT_ONCE = 1000
DISCARD_AT_ONCE = 10_000

QUEUE = SharedLeaseQueue(
    table="webhooks_pending",
    key="delivery_id",
    group="webhook_id",
    columns=("webhook_id",),
    timed=(Stage.WAITING, Stage.LEASED),
)
renew = QUEUE.renew

# Endpoints with ready deliveries and free slots: a free endpoint is found behind any number of full ones.
FIND_ENDPOINTS = f"""
WITH RECURSIVE {QUEUE.ready_groups}
SELECT * FROM (
    SELECT ready.webhook_id, w.active, w.pace, w.pace - in_flight.leased AS free_slots
      FROM ready
      LEFT JOIN LATERAL (SELECT active, pace FROM webhooks_webhook WHERE id = ready.webhook_id LIMIT 1) w ON true
      CROSS JOIN LATERAL (
        SELECT count(*) AS leased FROM webhooks_pending p
         WHERE p.stage = {Stage.LEASED} AND p.webhook_id = ready.webhook_id) in_flight
     WHERE w.active IS NOT TRUE OR (w.pace > in_flight.leased AND w.pace >= %(least_pace)s)
     LIMIT %(max_endpoints)s) found
 ORDER BY webhook_id
"""  # noqa: S608 - constants
LEASE = f"""
WITH shares AS (SELECT * FROM unnest(%(webhooks)s::uuid[], %(shares)s::int[]) AS given (webhook_id, share))
{QUEUE.claim_shares_sql}
"""  # noqa: S608 - constants
WIRE_TIME = 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'
# The log keeps the last 20 attempts.
ATTEMPT_LOG = "(CASE WHEN jsonb_array_length(d.attempts) >= 20 THEN d.attempts - 0 ELSE d.attempts END)"
# Expired entries are deleted and their deliveries exhausted. Due entries become ready and keep their due_at, from which
# the lag is measured. An expired lease is logged as a lost attempt: the receiver may or may not have got it.
PROMOTE = f"""
WITH old AS (
    SELECT delivery_id FROM webhooks_pending WHERE expires_at <= now() AND stage <> {Stage.LEASED}
     ORDER BY expires_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
), ended AS (
    DELETE FROM webhooks_pending p USING old WHERE p.delivery_id = old.delivery_id RETURNING p.delivery_id
), exhausted AS (
    UPDATE webhooks_webhookdelivery d SET status = 'exhausted' FROM ended WHERE d.id = ended.delivery_id
), {QUEUE.due_rows(condition=f"(stage = {Stage.LEASED} OR expires_at > now())")}, ready AS (
    UPDATE webhooks_pending p SET stage = {Stage.READY} FROM due WHERE p.delivery_id = due.delivery_id
)
UPDATE webhooks_webhookdelivery d
   SET attempt_count = d.attempt_count + 1, status_code = NULL, error = 'worker_lost',
       attempts = {ATTEMPT_LOG} || jsonb_build_object(
           'at', to_char(now() AT TIME ZONE 'UTC', '{WIRE_TIME}'),
           'durationMs', NULL, 'statusCode', NULL, 'error', 'worker_lost', 'answer', NULL)
  FROM due WHERE d.id = due.delivery_id AND due.stage = {Stage.LEASED}
"""  # noqa: S608 - constants
DISCARD = """
WITH gone AS (
    SELECT delivery_id FROM webhooks_pending WHERE {rows} ORDER BY delivery_id LIMIT %(limit)s FOR UPDATE
), freed AS (
    DELETE FROM webhooks_pending p USING gone WHERE p.delivery_id = gone.delivery_id RETURNING p.delivery_id
)
UPDATE webhooks_webhookdelivery d SET status = 'discarded' FROM freed WHERE d.id = freed.delivery_id
"""
DISCARD_OF_WEBHOOK = DISCARD.format(
    rows=f"stage IN ({Stage.WAITING}, {Stage.READY}, {Stage.LEASED}) AND webhook_id = %(webhook)s"
)
# Entries of events published while their endpoint was being disabled or deleted.
DISCARD_LEFTOVER = DISCARD.format(
    rows=f"stage = {Stage.READY} AND webhook_id = ANY(%(webhooks)s) AND NOT (by_hand AND EXISTS ("
    "SELECT FROM webhooks_webhook w WHERE w.id = webhook_id))"
)
LAG = f"""
WITH RECURSIVE {QUEUE.ready_groups}, overdue AS (
    (SELECT due_at FROM webhooks_pending WHERE {QUEUE.is_due} ORDER BY due_at LIMIT 1)
    UNION ALL
    SELECT due_at FROM ready JOIN webhooks_webhook w ON w.id = ready.webhook_id
     WHERE (SELECT count(*) FROM webhooks_pending p
             WHERE p.stage = {Stage.LEASED} AND p.webhook_id = ready.webhook_id) < w.pace
)
SELECT now() - min(due_at) FROM overdue
"""  # noqa: S608 - constants


@dataclass(frozen=True)
class WebhookClaim(Claim):
    """A leased delivery."""

    webhook: UUID
    is_slow: bool

    @property
    def delivery_id(self) -> str:
        return from_uuid(self.key, prefix="whd_")

    @property
    def webhook_id(self) -> str:
        return from_uuid(self.webhook, prefix="wh_")


@dataclass(frozen=True)
class EndpointShares:
    """Equal shares for the endpoints with ready deliveries and free slots, at most slow_limit for slow endpoints."""

    slow_limit: int

    def claim_turn(self, limit: int, *, after: UUID, claimed: Sequence[WebhookClaim] = ()) -> Turn[WebhookClaim]:
        """Lease deliveries; see core.lib.worker.lease_queue.FairnessRule."""
        slow_limit = self.slow_limit - sum(claim.is_slow for claim in claimed)
        due = find_endpoints(after=after, least_pace=SLOW_PACE if slow_limit > 0 else FIRST_PACE)
        endpoints = limit_shares(due, limit=limit, slow_limit=slow_limit)
        shares = allocate(endpoints, limit=limit)
        rows = run(LEASE, {"webhooks": list(shares), "shares": list(shares.values()), "limit": limit}) if shares else []
        slow = {endpoint.webhook for endpoint in endpoints if endpoint.is_slow}
        claims = [WebhookClaim(key, fence, attempt, webhook, webhook in slow) for key, fence, attempt, webhook in rows]
        if len(endpoints) == limit:
            return claims, endpoints[-1].webhook
        return claims, due[-1].webhook if len(due) == MAX_ENDPOINTS else FIRST


def find_endpoints(*, after: UUID, least_pace: int) -> list[EndpointShare]:
    """Return up to MAX_ENDPOINTS endpoints with ready deliveries after `after`; discard those of disabled endpoints."""
    rows = run(FIND_ENDPOINTS, {"after": after, "least_pace": least_pace, "max_endpoints": MAX_ENDPOINTS})
    off = [webhook for webhook, active, *_ in rows if not active]
    if off:
        run(DISCARD_LEFTOVER, {"webhooks": off, "limit": DISCARD_AT_ONCE})
    return [
        EndpointShare(webhook, free_slots, is_slow=pace < FIRST_PACE)
        for webhook, _, pace, free_slots in rows
        if pace is not None
    ]


def promote() -> None:
    """Make due entries ready and end expired ones."""
    run(PROMOTE, {"limit": PROMOTE_AT_ONCE})


def discard_pending(webhook_id: str) -> None:
    """Discard up to DISCARD_AT_ONCE entries of an endpoint; if it is disabled, later claims discard the rest."""
    run(DISCARD_OF_WEBHOOK, {"webhook": to_uuid(webhook_id, prefix="wh_"), "limit": DISCARD_AT_ONCE})


def lag() -> timedelta | None:
    """Return the age of the oldest due delivery, or None without one.

    Deliveries waiting because their endpoint is at its pace are not counted: they say nothing about the workers.
    """
    ((age,),) = run(LAG, {"after": FIRST})
    return age  # type: ignore[no-any-return]
