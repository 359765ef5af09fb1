"""Delivery outcomes: record the attempts for claimed deliveries, one transaction per batch, guarded by the fence.

Lock order everywhere: PendingDelivery by delivery → WebhookDelivery → Webhook by id. A worker that lost its lease
finds another fence on its rows and changes nothing.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import connection, transaction

from lib.ids import from_uuid, to_uuid
from webhooks.models import Webhook, WebhookDeliveryStatus
from webhooks.sending.endpoint_shares import FULL_PACE, SLOW_PACE, SLOW_SECONDS
from webhooks.sending.post import PostAttempt
from webhooks.sending.queue import ATTEMPT_LOG, WIRE_TIME, WebhookClaim, discard_pending
from webhooks.sending.retries import MAX_RETRY_AFTER, delay_after

GONE = 410
GIVE_UP_AFTER = timedelta(days=3)
GONE_REASON = "The endpoint returned 410 Gone."
FAILING_REASON = "No event could be delivered for 3 days."

LOCK_CLAIMED = """
SELECT p.delivery_id FROM webhooks_pending p
  JOIN unnest(%s::uuid[], %s::int[]) AS claim (delivery_id, fence)
    ON p.delivery_id = claim.delivery_id AND p.fence = claim.fence AND p.stage = 2
 ORDER BY p.delivery_id FOR UPDATE OF p
"""
# A wait that would outlast the window is shortened to end a minute before the window does, enough for a worker to
# claim the delivery. A wait that would be shortened to less than half ends the delivery instead.
WAIT = """
UPDATE webhooks_pending p
   SET stage = 0, due_at = least(now() + make_interval(secs => w.seconds),
                                 greatest(p.expires_at - interval '1 min', now() + make_interval(secs => w.least)))
  FROM unnest(%s::uuid[], %s::float[], %s::float[]) AS w (delivery_id, seconds, least)
 WHERE p.delivery_id = w.delivery_id AND now() + make_interval(secs => w.least) < p.expires_at
RETURNING p.delivery_id
"""
FINISH = "DELETE FROM webhooks_pending WHERE delivery_id = ANY(%s)"
APPLY = f"""
UPDATE webhooks_webhookdelivery d
   SET status = v.status, attempt_count = d.attempt_count + 1, status_code = v.status_code, error = v.error,
       succeeded_at = CASE WHEN v.status = 'succeeded' THEN coalesce(d.succeeded_at, now()) ELSE d.succeeded_at END,
       attempts = {ATTEMPT_LOG} || jsonb_build_object(
           'at', to_char((now() - make_interval(secs => v.seconds)) AT TIME ZONE 'UTC', '{WIRE_TIME}'),
           'durationMs', round(v.seconds * 1000), 'statusCode', v.status_code, 'error', nullif(v.error, ''),
           'answer', v.answer)
  FROM json_to_recordset(%s) AS v (id uuid, status text, status_code smallint, error text, seconds float, answer text)
 WHERE d.id = v.id
"""  # noqa: S608 - constants
# Only endpoints whose health changes are updated, so that a busy endpoint is not a hot row.
HEALTH = """
WITH given AS (
    SELECT v.*, CASE WHEN v.slow THEN %(slow)s ELSE least(%(full)s, w.pace * 2) END AS pace
      FROM json_to_recordset(%(rows)s) AS v (id uuid, slow boolean, succeeded boolean)
      JOIN webhooks_webhook w USING (id)
), changed AS (
    SELECT w.id, given.pace, given.succeeded FROM webhooks_webhook w JOIN given USING (id)
     WHERE w.pace <> given.pace OR (w.failing_since IS NOT NULL) = given.succeeded
        OR w.failing_since < now() - %(patience)s
     ORDER BY w.id FOR NO KEY UPDATE OF w
)
UPDATE webhooks_webhook w
   SET pace = changed.pace,
       failing_since = CASE WHEN changed.succeeded THEN NULL ELSE coalesce(w.failing_since, now()) END
  FROM changed WHERE w.id = changed.id
RETURNING w.id, w.active AND w.failing_since < now() - %(patience)s
"""


@dataclass(frozen=True)
class AttemptResult:
    claim: WebhookClaim
    attempt: PostAttempt

    @property
    def is_success(self) -> bool:
        return not self.attempt.error


def record(results: Sequence[AttemptResult]) -> None:
    """Record the attempts whose claims are still valid; disable endpoints that are gone or failing for too long."""
    with transaction.atomic():
        valid = _lock_claimed(results)
        waiting = _wait([result for result in valid if not result.is_success])
        _finish([result for result in valid if result.claim.delivery_id not in waiting])
        _apply(valid, waiting)
        failing_too_long = _health(valid)
    gone = {result.claim.webhook_id for result in valid if result.attempt.status_code == GONE}
    for webhook_id in gone:
        disable_webhook(webhook_id, reason=GONE_REASON)
    for webhook_id in failing_too_long - gone:
        disable_webhook(webhook_id, reason=FAILING_REASON)


@transaction.atomic
def disable_webhook(webhook_id: str, *, reason: str) -> None:
    """Disable an endpoint and discard its pending deliveries. A disabled endpoint keeps its reason."""
    discard_pending(webhook_id)
    Webhook.objects.filter(id=webhook_id, active=True).update(active=False, disabled_reason=reason)


def _lock_claimed(results: Sequence[AttemptResult]) -> list[AttemptResult]:
    by_id = {to_uuid(result.claim.delivery_id, prefix="whd_"): result for result in results}
    with connection.cursor() as cursor:
        cursor.execute(LOCK_CLAIMED, [list(by_id), [result.claim.fence for result in by_id.values()]])
        return [by_id[delivery_id] for (delivery_id,) in cursor.fetchall()]


def _wait(failed: Sequence[AttemptResult]) -> set[str]:
    """Schedule the next attempt of deliveries that have one left; return their ids."""
    waits = [(result, delay) for result in failed if (delay := delay_after(result.claim.attempt)) is not None]
    if not waits:
        return set()
    deliveries = [to_uuid(result.claim.delivery_id, prefix="whd_") for result, _ in waits]
    seconds = [max(delay, _retry_after(result.attempt)).total_seconds() for result, delay in waits]
    least_seconds = [delay.total_seconds() / 2 for _, delay in waits]
    with connection.cursor() as cursor:
        cursor.execute(WAIT, [deliveries, seconds, least_seconds])
        return {from_uuid(delivery_id, prefix="whd_") for (delivery_id,) in cursor.fetchall()}


def _retry_after(attempt: PostAttempt) -> timedelta:
    return min(attempt.retry_after or timedelta(), MAX_RETRY_AFTER)


def _finish(results: Iterable[AttemptResult]) -> None:
    deliveries = [to_uuid(result.claim.delivery_id, prefix="whd_") for result in results]
    if deliveries:
        with connection.cursor() as cursor:
            cursor.execute(FINISH, [deliveries])


def _apply(results: Sequence[AttemptResult], waiting: set[str]) -> None:
    if results:
        with connection.cursor() as cursor:
            cursor.execute(APPLY, [json.dumps([_row(result, waiting) for result in results])])


def _row(result: AttemptResult, waiting: set[str]) -> dict[str, Any]:
    attempt, delivery_id = result.attempt, result.claim.delivery_id
    failed = WebhookDeliveryStatus.PENDING if delivery_id in waiting else WebhookDeliveryStatus.EXHAUSTED
    status = WebhookDeliveryStatus.SUCCEEDED if result.is_success else failed
    return {
        "id": str(to_uuid(delivery_id, prefix="whd_")),
        "status": status.value,
        "status_code": attempt.status_code,
        "error": attempt.error,
        "seconds": attempt.seconds,
        "answer": attempt.answer,
    }


def _health(results: Sequence[AttemptResult]) -> set[str]:
    """Update the pace and failing_since of each endpoint; return the ids of those failing for too long."""
    rows = _health_rows([result for result in results if result.attempt.counts_for_endpoint])
    if not rows:
        return set()
    values: dict[str, Any] = {
        "rows": json.dumps(rows),
        "slow": SLOW_PACE,
        "full": FULL_PACE,
        "patience": GIVE_UP_AFTER,
    }
    with connection.cursor() as cursor:
        cursor.execute(HEALTH, values)
        return {
            from_uuid(webhook_id, prefix="wh_")
            for webhook_id, is_failing_too_long in cursor.fetchall()
            if is_failing_too_long
        }


def _health_rows(results: Sequence[AttemptResult]) -> list[dict[str, Any]]:
    by_webhook: dict[str, list[AttemptResult]] = {}
    for result in results:
        by_webhook.setdefault(result.claim.webhook_id, []).append(result)
    return [
        {
            "id": str(to_uuid(webhook_id, prefix="wh_")),
            "slow": any(result.attempt.seconds > SLOW_SECONDS for result in webhook_results),
            "succeeded": any(result.is_success for result in webhook_results),
        }
        for webhook_id, webhook_results in by_webhook.items()
    ]
