"""Write down what became of claimed deliveries: one transaction for a batch, fenced.

Lock order everywhere: Pending by delivery → WebhookDelivery → Webhook by id. A worker that lost its lease finds
another fence on its rows and changes nothing.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import connection, transaction

from lib.ids import from_uuid, to_uuid
from webhooks.models import Webhook, WebhookDelivery
from webhooks.sending.endpoint_shares import FULL_PACE, SLOW_PACE, SLOW_SECONDS
from webhooks.sending.post import Attempt
from webhooks.sending.queue import LOG, WIRE_TIME, Claim, discard
from webhooks.sending.retries import LONGEST_ASKED, delay_after

GONE = 410
GIVE_UP_AFTER = timedelta(days=3)
GONE_REASON = "The endpoint answered 410 Gone."
FAILING_REASON = "For 3 days no event could be delivered."

HELD = """
SELECT p.delivery_id FROM webhooks_pending p
  JOIN unnest(%s::uuid[], %s::int[]) AS held (delivery_id, fence)
    ON p.delivery_id = held.delivery_id AND p.fence = held.fence AND p.stage = 2
 ORDER BY p.delivery_id FOR UPDATE OF p
"""
# A wait that would end beyond the window is cut to a minute before its end, which is time enough for a worker to see
# it. One that had to be cut to less than half is not begun.
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
       attempts = {LOG} || jsonb_build_object(
           'at', to_char((now() - make_interval(secs => v.seconds)) AT TIME ZONE 'UTC', '{WIRE_TIME}'),
           'durationMs', round(v.seconds * 1000), 'statusCode', v.status_code, 'error', nullif(v.error, ''),
           'answer', v.answer)
  FROM json_to_recordset(%s) AS v (id uuid, status text, status_code smallint, error text, seconds float, answer text)
 WHERE d.id = v.id
"""  # noqa: S608 - constants
# Only an endpoint whose health changes is written to, so that a busy one is no hot row.
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

Status = WebhookDelivery.Status


@dataclass(frozen=True)
class Result:
    claim: Claim
    attempt: Attempt

    @property
    def is_success(self) -> bool:
        return not self.attempt.error


def record(results: Sequence[Result]) -> None:
    """Record attempts whose claims are still held; then turn off the endpoints that want or deserve no more."""
    with transaction.atomic():
        ours = _held(results)
        waiting = _wait([result for result in ours if not result.is_success])
        _finish([result for result in ours if result.claim.delivery_id not in waiting])
        _apply(ours, waiting)
        hopeless = _health(ours)
    gone = {result.claim.webhook_id for result in ours if result.attempt.status_code == GONE}
    for webhook_id in gone:
        disable(webhook_id, reason=GONE_REASON)
    for webhook_id in hopeless - gone:
        disable(webhook_id, reason=FAILING_REASON)


@transaction.atomic
def disable(webhook_id: str, *, reason: str) -> None:
    """Turn an endpoint off and end what waits for it; one that is off stays as it is."""
    discard(webhook_id)
    Webhook.objects.filter(id=webhook_id, active=True).update(active=False, disabled_reason=reason)


def _held(results: Sequence[Result]) -> list[Result]:
    by_id = {to_uuid(result.claim.delivery_id, prefix="whd_"): result for result in results}
    with connection.cursor() as cursor:
        cursor.execute(HELD, [list(by_id), [result.claim.fence for result in by_id.values()]])
        return [by_id[delivery_id] for (delivery_id,) in cursor.fetchall()]


def _wait(failed: Sequence[Result]) -> set[str]:
    """Let those wait that have an attempt left; return their deliveries."""
    waits = [(result, delay) for result in failed if (delay := delay_after(result.claim.attempt)) is not None]
    if not waits:
        return set()
    deliveries = [to_uuid(result.claim.delivery_id, prefix="whd_") for result, _ in waits]
    seconds = [max(delay, _asked(result.attempt)).total_seconds() for result, delay in waits]
    least_seconds = [delay.total_seconds() / 2 for _, delay in waits]
    with connection.cursor() as cursor:
        cursor.execute(WAIT, [deliveries, seconds, least_seconds])
        return {from_uuid(delivery_id, prefix="whd_") for (delivery_id,) in cursor.fetchall()}


def _asked(attempt: Attempt) -> timedelta:
    return min(attempt.retry_after or timedelta(), LONGEST_ASKED)


def _finish(results: Iterable[Result]) -> None:
    deliveries = [to_uuid(result.claim.delivery_id, prefix="whd_") for result in results]
    if deliveries:
        with connection.cursor() as cursor:
            cursor.execute(FINISH, [deliveries])


def _apply(results: Sequence[Result], waiting: set[str]) -> None:
    if results:
        with connection.cursor() as cursor:
            cursor.execute(APPLY, [json.dumps([_row(result, waiting) for result in results])])


def _row(result: Result, waiting: set[str]) -> dict[str, Any]:
    attempt, delivery_id = result.attempt, result.claim.delivery_id
    status = Status.SUCCEEDED if result.is_success else Status.PENDING if delivery_id in waiting else Status.EXHAUSTED
    return {
        "id": str(to_uuid(delivery_id, prefix="whd_")),
        "status": status.value,
        "status_code": attempt.status_code,
        "error": attempt.error,
        "seconds": attempt.seconds,
        "answer": attempt.answer,
    }


def _health(results: Sequence[Result]) -> set[str]:
    """Note how each endpoint did; return those that have failed for too long."""
    rows = _health_rows([result for result in results if result.attempt.tells_of_endpoint])
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
        return {from_uuid(webhook_id, prefix="wh_") for webhook_id, is_hopeless in cursor.fetchall() if is_hopeless}


def _health_rows(results: Sequence[Result]) -> list[dict[str, Any]]:
    by_webhook: dict[str, list[Result]] = {}
    for result in results:
        by_webhook.setdefault(result.claim.webhook_id, []).append(result)
    return [
        {
            "id": str(to_uuid(webhook_id, prefix="wh_")),
            "slow": any(result.attempt.seconds > SLOW_SECONDS for result in some),
            "succeeded": any(result.is_success for result in some),
        }
        for webhook_id, some in by_webhook.items()
    ]
