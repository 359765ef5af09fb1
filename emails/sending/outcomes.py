"""Write down what became of claimed recipients: one transaction for a batch, fenced.

Lock order everywhere: Pending → Recipient → Email by id → sorted inserts. A worker that lost its lease
finds another fence on its rows and changes nothing.
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
from emails.sending.queue import LOST_AT_MOST, Claim, park
from emails.sending.retries import delay_after, max_age
from emails.states import State, sources
from emails.status_rollup import derived
from emails.upkeep import reputation_counters
from lib.ids import from_uuid, to_uuid
from lib.sql import run_planned
from suppressions.models import Suppression
from suppressions.services import suppress_everywhere

# The rows that are still ours, locked in one order.
HELD = """
SELECT p.recipient_id, now() FROM emails_pending p
  JOIN unnest(%s::uuid[], %s::int[]) AS held (recipient_id, fence)
    ON p.recipient_id = held.recipient_id AND p.fence = held.fence AND p.stage = 2
 ORDER BY p.recipient_id FOR UPDATE OF p
"""
WAIT = """
UPDATE emails_pending p
   SET stage = 0, due_at = now() + make_interval(secs => w.seconds), parked = 0,
       lost = CASE WHEN w.is_outcome THEN 0 ELSE p.lost + 1 END
  FROM unnest(%s::uuid[], %s::float[], %s::boolean[]) AS w (recipient_id, seconds, is_outcome)
 WHERE p.recipient_id = w.recipient_id
"""
# A state moves only along the table; times and replies are facts and are kept whatever the state is.
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
class Result:
    claim: Claim
    outcome: DeliveryOutcome


@dataclass(frozen=True)
class _Found:
    """A recipient after the update."""

    email_id: str
    address: str
    state: State


@dataclass(frozen=True)
class _Effect:
    """What a verdict does: the states passed, the events told."""

    states: tuple[State, ...]
    events: tuple[Event.Kind, ...]
    is_final: bool = True


EFFECTS = {
    DeliveryStatus.SENT: _Effect((State.SENT,), (Event.Kind.SENT,)),
    DeliveryStatus.DELIVERED: _Effect((State.SENT, State.DELIVERED), (Event.Kind.SENT, Event.Kind.DELIVERED)),
    DeliveryStatus.BOUNCED: _Effect((State.BOUNCED,), (Event.Kind.BOUNCED,)),
    DeliveryStatus.FAILED: _Effect((State.FAILED,), (Event.Kind.FAILED,)),
    DeliveryStatus.DEFERRED: _Effect((), (Event.Kind.DEFERRED,), is_final=False),
}


# Not an answer of the world; three of them in a row are enough.
OUR_FAULTS = frozenset({"internal_error"})
# A name is dead when it does not exist twice, some time apart (CONTRACT section 4).
LEAST_DELAYS = {"bad_domain_unconfirmed": timedelta(seconds=310)}


# Without a savepoint: whoever calls this within a transaction does not go on after an error.
@transaction.atomic(savepoint=False)
def record(results: Sequence[Result]) -> list[Result]:
    """Record results of claims that are still held, and return those; the others are left to their new holders."""
    held = _held(results)
    ours = [_expired(result, now=now) for result, now in held]
    parked = [result.claim for result in ours if result.outcome.verdict is DeliveryStatus.PARKED]
    if parked:
        counters.add(queue_stats.later(park(parked)))
    tried = [result for result in ours if result.outcome.verdict is not DeliveryStatus.PARKED]
    if not tried:
        return ours
    found = _apply(tried)
    add_events([event for result in tried for event in _events(result, found[result.claim.recipient_id])])
    changes = derived(sorted({recipient.email_id for recipient in found.values()}))
    # The database's time, the same for all.
    _, now = held[0]
    counters.add([*changes, *_counts(tried, found), *_rated(tried, found, now=now)])
    _suppress(tried, found)
    return ours


def _held(results: Sequence[Result]) -> list[tuple[Result, datetime]]:
    """Lock the rows of claims that are still held; return their results, each with the database's time."""
    by_id = {to_uuid(result.claim.recipient_id): result for result in results}
    held = dict(run_planned(HELD, [list(by_id), [result.claim.fence for result in by_id.values()]]))
    return [(result, held[recipient_id]) for recipient_id, result in by_id.items() if recipient_id in held]


def _expired(result: Result, *, now: datetime) -> Result:
    """Turn what would wait into a failure when it is too old to be tried again, or a fault of ours each time."""
    claim, outcome = result.claim, result.outcome
    if _is_final(outcome.verdict):
        return result
    is_too_old = now + _delay(result) >= claim.since + max_age()
    is_hopeless = outcome.reason in OUR_FAULTS and claim.lost + 1 >= LOST_AT_MOST
    if not is_too_old and not is_hopeless:
        return result
    return Result(claim, replace(outcome, verdict=DeliveryStatus.FAILED))


def _delay(result: Result) -> timedelta:
    if result.outcome.verdict is DeliveryStatus.PARKED:
        return timedelta(0)
    return max(delay_after(result.claim.attempt), LEAST_DELAYS.get(result.outcome.reason, timedelta(0)))


def _wait(result: Result) -> tuple[UUID, float, bool]:
    is_outcome = result.outcome.reason not in OUR_FAULTS
    return to_uuid(result.claim.recipient_id), _delay(result).total_seconds(), is_outcome


def _apply(results: Sequence[Result]) -> dict[str, _Found]:
    """Move the queue's rows and the recipients; return what each recipient is now."""
    final = [to_uuid(result.claim.recipient_id) for result in results if _is_final(result.outcome.verdict)]
    waits = [_wait(result) for result in results if not _is_final(result.outcome.verdict)]
    if waits:
        run_planned(WAIT, [[wait[column] for wait in waits] for column in range(3)])
    rows = json.dumps([_row(result) for result in results])
    updated = run_planned(FINISH_AND_APPLY, {"final": final, "rows": rows})
    return {
        from_uuid(id_): _Found(from_uuid(email_id), address, State(state)) for id_, email_id, address, state in updated
    }


def _row(result: Result) -> dict[str, Any]:
    states, reply = _effect(result).states, result.outcome.reply
    row = {
        "id": str(to_uuid(result.claim.recipient_id)),
        "state": states[-1].value if states else None,
        "sources": sources(states[0]) if states else [],
        "attempts": result.claim.attempt,
        "sent": State.SENT in states,
        "delivered": State.DELIVERED in states,
        "bounced": State.BOUNCED in states,
        "finished": _effect(result).is_final,
        "provider_id": result.outcome.provider_id or None,
    }
    if result.outcome.reason:
        row |= {"code": reply.code or None, "enhanced_code": reply.enhanced_code, "message": reply.text}
        row |= {"reason": result.outcome.reason}
    return row


def _events(result: Result, recipient: _Found) -> Iterator[NewEvent]:
    reply, reason = result.outcome.reply, result.outcome.reason
    details = {"code": reply.code or None, "enhancedCode": reply.enhanced_code, "message": reply.text, "reason": reason}
    for kind in _effect(result).events:
        yield NewEvent(
            kind, recipient.email_id, result.claim.recipient_id, recipient.address, details if reason else {}
        )


def _counts(results: Sequence[Result], found: Mapping[str, _Found]) -> Iterator[queue_stats.Change]:
    """Count for queue/stats, by the states reached, and for /metrics, by what hosts said."""
    for result in results:
        state = found[result.claim.recipient_id].state
        count = queue_stats.finished(state) if _is_final(result.outcome.verdict) else queue_stats.Count.DELAYED
        yield queue_stats.change(count, result.claim.workspace_id)
        yield delivery_health.outcome(result.outcome.verdict, result.outcome.reason)


def _rated(results: Sequence[Result], found: Mapping[str, _Found], *, now: datetime) -> Iterator[queue_stats.Change]:
    for result in results:
        workspace_id, address = result.claim.workspace_id, found[result.claim.recipient_id].address
        for what in reputation_counters.of_outcome(result.outcome):
            yield from reputation_counters.change(what, workspace_id=workspace_id, address=address, left_at=now)


def _suppress(results: Sequence[Result], found: Mapping[str, _Found]) -> None:
    """Block the addresses that bounced for a reason of their own (SUPPRESS_ON)."""
    policy = SuppressOn(settings.SUPPRESS_ON)
    suppress_everywhere(
        (result.claim.workspace_id, Suppression.Reason.BOUNCE.value, found[result.claim.recipient_id].address)
        for result in results
        if result.outcome.suppresses(policy)
    )


def _is_final(verdict: DeliveryStatus) -> bool:
    return verdict in EFFECTS and EFFECTS[verdict].is_final


def _effect(result: Result) -> _Effect:
    return EFFECTS[result.outcome.verdict]
