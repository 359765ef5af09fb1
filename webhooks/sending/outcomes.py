"""Delivery outcomes: record the attempts for claimed deliveries, one transaction per batch, guarded by the fence.

Lock order everywhere: PendingDelivery by delivery → WebhookDelivery → Webhook by id. A worker that lost its lease
finds another fence on its rows and changes nothing.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext_noop

from core.lib.ids import from_uuid, to_uuid
from core.lib.sql import run
from core.lib.worker.stages import Stage
from webhooks.models import Webhook, WebhookDeliveryStatus
from webhooks.sending.endpoint_shares import FULL_PACE, SLOW_PACE, SLOW_SECONDS
from webhooks.sending.post import PostAttempt
from webhooks.sending.queue import ATTEMPT_LOG, QUEUE, WIRE_TIME, WebhookClaim, discard_pending
from webhooks.sending.retries import MAX_RETRY_AFTER, delay_after

GONE = 410
GIVE_UP_AFTER = timedelta(days=3)
# Pages look up their translation.
GONE_REASON = gettext_noop("The endpoint returned 410 Gone.")
FAILING_REASON = gettext_noop("No event could be delivered for 3 days.")

# A wait that would outlast the window is shortened to end a minute before the window does, enough for a worker to
# claim the delivery. A wait that would be shortened to less than half ends the delivery instead.
WAIT = f"""
UPDATE webhooks_pending p
   SET stage = {Stage.WAITING}, due_at = least(now() + make_interval(secs => w.seconds),
                                 greatest(p.expires_at - interval '1 min', now() + make_interval(secs => w.least)))
  FROM unnest(%s::uuid[], %s::float[], %s::float[]) AS w (delivery_id, seconds, least)
 WHERE p.delivery_id = w.delivery_id AND now() + make_interval(secs => w.least) < p.expires_at
RETURNING p.delivery_id
"""  # noqa: S608 - constants
FINISH = "DELETE FROM webhooks_pending WHERE delivery_id = ANY(%s)"
APPLY = f"""
UPDATE webhooks_webhookdelivery d
   SET status = v.status, attempt_count = d.attempt_count + 1, status_code = v.status_code, error = v.error,
       succeeded_at = CASE WHEN v.status = 'succeeded' THEN coalesce(d.succeeded_at, now()) ELSE d.succeeded_at END,
       attempts = {ATTEMPT_LOG} || jsonb_build_object(
           'at', to_char((now() - make_interval(secs => v.seconds)) AT TIME ZONE 'UTC', '{WIRE_TIME}'),
           'durationMs', round(v.seconds * 1000), 'statusCode', v.status_code, 'error', nullif(v.error, ''),
           'answer', v.answer, 'headers', v.headers)
  FROM json_to_recordset(%s) AS v (id uuid, status text, status_code smallint, error text, seconds float, answer text,
                                   headers json)
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
    """An attempt to record.

    headers: those of the request that differ between attempts; None if none was made.
    is_final: whether no other attempt follows, even if it failed.
    """

    claim: WebhookClaim
    attempt: PostAttempt
    headers: Mapping[str, str] | None = None
    is_final: bool = False

    @property
    def is_success(self) -> bool:
        return not self.attempt.error


def record(results: Sequence[AttemptResult]) -> None:
    """Record the attempts whose claims are still valid; disable endpoints that are gone or failing for too long."""
    with transaction.atomic():
        claims = QUEUE.lock_claimed([result.claim for result in results])
        valid = [result for result in results if result.claim in claims]
        waiting = _wait([result for result in valid if not result.is_success and not result.is_final])
        run(FINISH, [[result.claim.key for result in valid if result.claim.key not in waiting]])
        run(APPLY, [json.dumps([_row(result, waiting) for result in valid])])
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


def _wait(failed: Sequence[AttemptResult]) -> set[UUID]:
    """Schedule the next attempt of deliveries that have one left; return their keys."""
    waits = [(result, delay) for result in failed if (delay := delay_after(result.claim.attempt)) is not None]
    if not waits:
        return set()
    deliveries = [result.claim.key for result, _ in waits]
    seconds = [
        max(delay, min(result.attempt.retry_after or timedelta(), MAX_RETRY_AFTER)).total_seconds()
        for result, delay in waits
    ]
    least_seconds = [delay.total_seconds() / 2 for _, delay in waits]
    return {key for (key,) in run(WAIT, [deliveries, seconds, least_seconds])}


def _row(result: AttemptResult, waiting: set[UUID]) -> dict[str, Any]:
    attempt, key = result.attempt, result.claim.key
    failed = WebhookDeliveryStatus.PENDING if key in waiting else WebhookDeliveryStatus.EXHAUSTED
    status = WebhookDeliveryStatus.SUCCEEDED if result.is_success else failed
    return {
        "id": str(key),
        "status": status.value,
        "status_code": attempt.status_code,
        "error": attempt.error,
        "seconds": attempt.seconds,
        "answer": attempt.answer,
        "headers": result.headers,
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
    health = run(HEALTH, values)
    return {from_uuid(webhook_id, prefix="wh_") for webhook_id, is_failing_too_long in health if is_failing_too_long}


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
