"""Delivery outcomes of claimed recipients: recorded in one transaction per batch, guarded by the fence.

Lock order everywhere: QueueEntry → Recipient → Email by id → sorted inserts. A worker that lost its lease finds a
different fence on its entries and changes nothing.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction

from analytics import counters
from delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, SuppressOn
from emails import queue_stats
from emails.events.timeline import NewEvent, add_events
from emails.models import Event
from emails.sending import delivery_health
from emails.sending.queue import MAX_LOST_CLAIMS, EmailClaim, park
from emails.sending.retries import delay_after, max_age
from emails.states import EmailStatus, source_statuses
from emails.status_rollup import roll_up
from emails.upkeep import reputation_counters
from lib.ids import from_uuid, to_uuid
from lib.sql import run_replanned
from suppressions.models import Suppression
from suppressions.services import suppress_in_workspaces

# The entries that this worker still leases, locked in a fixed order.
LOCK_CLAIMED = """
SELECT p.recipient_id, now() FROM emails_pending p
  JOIN unnest(%s::uuid[], %s::int[]) AS claimed (recipient_id, fence)
    ON p.recipient_id = claimed.recipient_id AND p.fence = claimed.fence AND p.stage = 2
 ORDER BY p.recipient_id FOR UPDATE OF p
"""
DEFER = """
UPDATE emails_pending p
   SET stage = 0, due_at = now() + make_interval(secs => w.seconds), parked = 0,
       lost = CASE WHEN w.is_outcome THEN 0 ELSE p.lost + 1 END
  FROM unnest(%s::uuid[], %s::float[], %s::boolean[]) AS w (recipient_id, seconds, is_outcome)
 WHERE p.recipient_id = w.recipient_id
"""
# The state changes only as emails.states allows; times and replies are kept in every state.
FINISH_AND_APPLY = """
WITH finished AS (DELETE FROM emails_pending WHERE recipient_id = ANY(%(final)s))
UPDATE emails_recipient r
   SET state = CASE WHEN r.state = ANY(v.sources) THEN v.state ELSE r.state END,
       attempts = v.attempts,
       sent_at = CASE WHEN v.sent THEN coalesce(r.sent_at, now()) ELSE r.sent_at END,
       delivered_at = CASE WHEN v.delivered THEN coalesce(r.delivered_at, now()) ELSE r.delivered_at END,
       bounced_at = CASE WHEN v.bounced THEN coalesce(r.bounced_at, now()) ELSE r.bounced_at END,
       finished_at = CASE WHEN v.finished THEN now() END,
       replied_at = CASE WHEN v.message IS NULL THEN r.replied_at ELSE now() END,
       reply_code = coalesce(v.code, r.reply_code),
       enhanced_code = CASE WHEN v.message IS NULL THEN r.enhanced_code ELSE v.enhanced_code END,
       error_message = coalesce(v.message, r.error_message),
       reason = coalesce(v.reason, r.reason),
       provider_message_id = coalesce(v.provider_id, r.provider_message_id)
  FROM json_to_recordset(%(rows)s) AS v (id uuid, state text, sources text[], attempts smallint, sent boolean,
       delivered boolean, bounced boolean, finished boolean, code smallint, enhanced_code text, message text,
       reason text, provider_id text)
 WHERE r.id = v.id
RETURNING r.id, r.email_id, r.address, r.state
"""


@dataclass(frozen=True)
class SendResult:
    """A claim and the outcome of its delivery attempt."""

    claim: EmailClaim
    outcome: DeliveryOutcome


@dataclass(frozen=True)
class _UpdatedRecipient:
    """A recipient after the update."""

    email_id: str
    address: str
    state: EmailStatus


@dataclass(frozen=True)
class _StatusEffect:
    """The effect of a delivery status: the states to pass through, and the events to record."""

    states: tuple[EmailStatus, ...]
    events: tuple[Event.EventKind, ...]
    is_final: bool = True


STATUS_EFFECTS = {
    DeliveryStatus.SENT: _StatusEffect((EmailStatus.SENT,), (Event.EventKind.SENT,)),
    DeliveryStatus.DELIVERED: _StatusEffect(
        (EmailStatus.SENT, EmailStatus.DELIVERED), (Event.EventKind.SENT, Event.EventKind.DELIVERED)
    ),
    DeliveryStatus.BOUNCED: _StatusEffect((EmailStatus.BOUNCED,), (Event.EventKind.BOUNCED,)),
    DeliveryStatus.FAILED: _StatusEffect((EmailStatus.FAILED,), (Event.EventKind.FAILED,)),
    DeliveryStatus.DEFERRED: _StatusEffect((), (Event.EventKind.DEFERRED,), is_final=False),
}

# Errors inside Postrider rather than replies; after three in a row the recipient fails.
INTERNAL_ERRORS = frozenset({"internal_error"})
# A domain counts as nonexistent after two lookups, some time apart (docs/specification.md, Refusals).
MINIMUM_DELAYS = {"bad_domain_unconfirmed": timedelta(seconds=310)}


# Without a savepoint: callers with an open transaction do not continue after an error.
@transaction.atomic(savepoint=False)
def record_results(results: Sequence[SendResult]) -> list[SendResult]:
    """Record the results whose claims this worker still leases, and return those; ignore the others."""
    locked = _lock_claimed(results)
    current = [_fail_if_expired(result, now=now) for result, now in locked]
    parked = [result.claim for result in current if result.outcome.status is DeliveryStatus.PARKED]
    if parked:
        counters.add(queue_stats.delayed_changes(park(parked)))
    attempted = [result for result in current if result.outcome.status is not DeliveryStatus.PARKED]
    if not attempted:
        return current
    recipients = _update_rows(attempted)
    add_events([event for result in attempted for event in _events(result, recipients[result.claim.recipient_id])])
    changes = roll_up(sorted({recipient.email_id for recipient in recipients.values()}))
    # The database's time, the same for every result.
    _, now = locked[0]
    counters.add(
        [*changes, *_queue_changes(attempted, recipients), *_reputation_changes(attempted, recipients, now=now)]
    )
    _suppress(attempted, recipients)
    return current


def _lock_claimed(results: Sequence[SendResult]) -> list[tuple[SendResult, datetime]]:
    """Lock the entries that are still leased; return their results, each with the database's time."""
    by_id = {to_uuid(result.claim.recipient_id): result for result in results}
    locked_at = dict(run_replanned(LOCK_CLAIMED, [list(by_id), [result.claim.fence for result in by_id.values()]]))
    return [(result, locked_at[id_]) for id_, result in by_id.items() if id_ in locked_at]


def _fail_if_expired(result: SendResult, *, now: datetime) -> SendResult:
    """Turn a deferral or parking into a failure if the recipient is too old, or after repeated internal errors."""
    claim, outcome = result.claim, result.outcome
    if _is_final(outcome.status):
        return result
    is_too_old = now + _delay(result) >= claim.since + max_age()
    is_repeated_error = outcome.reason in INTERNAL_ERRORS and claim.lost + 1 >= MAX_LOST_CLAIMS
    if not is_too_old and not is_repeated_error:
        return result
    return SendResult(claim, replace(outcome, status=DeliveryStatus.FAILED))


def _delay(result: SendResult) -> timedelta:
    if result.outcome.status is DeliveryStatus.PARKED:
        return timedelta(0)
    return max(delay_after(result.claim.attempt), MINIMUM_DELAYS.get(result.outcome.reason, timedelta(0)))


def _defer_row(result: SendResult) -> tuple[UUID, float, bool]:
    is_outcome = result.outcome.reason not in INTERNAL_ERRORS
    return to_uuid(result.claim.recipient_id), _delay(result).total_seconds(), is_outcome


def _update_rows(results: Sequence[SendResult]) -> dict[str, _UpdatedRecipient]:
    """Update or delete the queue entries, update the recipients, and return the recipients by id."""
    final = [to_uuid(result.claim.recipient_id) for result in results if _is_final(result.outcome.status)]
    waits = [_defer_row(result) for result in results if not _is_final(result.outcome.status)]
    if waits:
        run_replanned(DEFER, [[wait[column] for wait in waits] for column in range(3)])
    rows = json.dumps([_recipient_row(result) for result in results])
    updated = run_replanned(FINISH_AND_APPLY, {"final": final, "rows": rows})
    return {
        from_uuid(id_): _UpdatedRecipient(from_uuid(email_id), address, EmailStatus(state))
        for id_, email_id, address, state in updated
    }


def _recipient_row(result: SendResult) -> dict[str, Any]:
    states, reply = _effect(result).states, result.outcome.reply
    row = {
        "id": str(to_uuid(result.claim.recipient_id)),
        "state": states[-1].value if states else None,
        "sources": source_statuses(states[0]) if states else [],
        "attempts": result.claim.attempt,
        "sent": EmailStatus.SENT in states,
        "delivered": EmailStatus.DELIVERED in states,
        "bounced": EmailStatus.BOUNCED in states,
        "finished": _effect(result).is_final,
        "provider_id": result.outcome.provider_id or None,
    }
    if result.outcome.reason:
        row |= {"code": reply.code or None, "enhanced_code": reply.enhanced_code, "message": reply.text}
        row |= {"reason": result.outcome.reason}
    return row


def _events(result: SendResult, recipient: _UpdatedRecipient) -> Iterator[NewEvent]:
    reply, reason = result.outcome.reply, result.outcome.reason
    details = {"code": reply.code or None, "enhancedCode": reply.enhanced_code, "message": reply.text, "reason": reason}
    for kind in _effect(result).events:
        yield NewEvent(
            kind, recipient.email_id, result.claim.recipient_id, recipient.address, details if reason else {}
        )


def _queue_changes(
    results: Sequence[SendResult], recipients: Mapping[str, _UpdatedRecipient]
) -> Iterator[counters.CounterChange]:
    """Yield counter changes for queue/stats, by the state reached, and for /metrics, by verdict and reason."""
    for result in results:
        state = recipients[result.claim.recipient_id].state
        count = (
            queue_stats.finished_counter(state)
            if _is_final(result.outcome.status)
            else queue_stats.RecipientCounter.DELAYED
        )
        yield queue_stats.counter_change(count, result.claim.workspace_id)
        yield delivery_health.outcome_change(result.outcome.status, result.outcome.reason)


def _reputation_changes(
    results: Sequence[SendResult], recipients: Mapping[str, _UpdatedRecipient], *, now: datetime
) -> Iterator[counters.CounterChange]:
    for result in results:
        workspace_id, address = result.claim.workspace_id, recipients[result.claim.recipient_id].address
        for counter in reputation_counters.classify_outcome(result.outcome):
            yield from reputation_counters.reputation_change(
                counter, workspace_id=workspace_id, address=address, sent_at=now
            )


def _suppress(results: Sequence[SendResult], recipients: Mapping[str, _UpdatedRecipient]) -> None:
    """Suppress the addresses that bounced, as SUPPRESS_ON decides."""
    policy = SuppressOn(settings.SUPPRESS_ON)
    suppress_in_workspaces(
        (result.claim.workspace_id, Suppression.Reason.BOUNCE.value, recipients[result.claim.recipient_id].address)
        for result in results
        if result.outcome.suppresses(policy)
    )


def _is_final(verdict: DeliveryStatus) -> bool:
    return verdict in STATUS_EFFECTS and STATUS_EFFECTS[verdict].is_final


def _effect(result: SendResult) -> _StatusEffect:
    return STATUS_EFFECTS[result.outcome.status]
