"""Write down what became of claimed recipients: one transaction for a batch, fenced.

Lock order everywhere: Pending → Recipient → Email by id → sorted inserts. A worker that lost its lease
finds another fence on its rows and changes nothing.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import connection, transaction

from analytics import tally
from delivery.replies import Outcome, Verdict
from emails import health, stats
from emails.derive import derive_emails
from emails.models import Event
from emails.queue import Claim
from emails.retries import delay_after, max_age
from emails.states import State, sources
from emails.timeline import NewEvent, add_events
from keys.ids import from_uuid, to_uuid

# The rows that are still ours, locked in one order.
HELD = """
SELECT p.recipient_id FROM emails_pending p
  JOIN unnest(%s::uuid[], %s::int[]) AS held (recipient_id, fence)
    ON p.recipient_id = held.recipient_id AND p.fence = held.fence AND p.stage = 2
 ORDER BY p.recipient_id FOR UPDATE OF p
"""
FINISH = "DELETE FROM emails_pending WHERE recipient_id = ANY(%s)"
WAIT = """
UPDATE emails_pending p SET stage = 0, due_at = now() + make_interval(secs => w.seconds)
  FROM unnest(%s::uuid[], %s::float[]) AS w (recipient_id, seconds) WHERE p.recipient_id = w.recipient_id
"""
# A state moves only along the table; times and replies are facts and are kept whatever the state is.
APPLY = """
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
       reason = coalesce(v.reason, r.reason)
  FROM json_to_recordset(%s) AS v (id uuid, state text, sources text[], attempts smallint, sent boolean,
       delivered boolean, bounced boolean, finished boolean, code smallint, enhanced_code text, message text,
       reason text)
 WHERE r.id = v.id
RETURNING r.id, r.email_id, r.address
"""


@dataclass(frozen=True)
class Result:
    claim: Claim
    outcome: Outcome


@dataclass(frozen=True)
class _Effect:
    """What a verdict does: the states passed, the events told."""

    states: tuple[State, ...]
    events: tuple[Event.Kind, ...]
    is_final: bool = True


EFFECTS = {
    Verdict.SENT: _Effect((State.SENT,), (Event.Kind.SENT,)),
    Verdict.DELIVERED: _Effect((State.SENT, State.DELIVERED), (Event.Kind.SENT, Event.Kind.DELIVERED)),
    Verdict.BOUNCED: _Effect((State.BOUNCED,), (Event.Kind.BOUNCED,)),
    Verdict.FAILED: _Effect((State.FAILED,), (Event.Kind.FAILED,)),
    Verdict.DEFERRED: _Effect((), (Event.Kind.DEFERRED,), is_final=False),
}


@transaction.atomic
def record(results: Sequence[Result]) -> None:
    """Record results of claims that are still held; the others are left to their new holders."""
    ours = [_expired(result) for result in _held(results)]
    if not ours:
        return
    _move_pending(ours)
    found = _apply(ours)
    add_events([event for result in ours for event in _events(result, *found[result.claim.recipient_id])])
    derive_emails(sorted({email_id for email_id, _ in found.values()}))
    tally.add(_counts(ours))


def _held(results: Sequence[Result]) -> list[Result]:
    by_id = {to_uuid(result.claim.recipient_id): result for result in results}
    with connection.cursor() as cursor:
        cursor.execute(HELD, [list(by_id), [result.claim.fence for result in by_id.values()]])
        held = {recipient_id for (recipient_id,) in cursor.fetchall()}
    return [result for recipient_id, result in by_id.items() if recipient_id in held]


def _expired(result: Result) -> Result:
    """Turn a deferral into a failure when its next attempt would come too late."""
    if result.outcome.verdict is not Verdict.DEFERRED:
        return result
    claim, outcome = result.claim, result.outcome
    if datetime.now(UTC) + delay_after(claim.attempt) < claim.since + max_age():
        return result
    return Result(claim, Outcome(Verdict.FAILED, outcome.reply, outcome.reason))


def _move_pending(results: Sequence[Result]) -> None:
    final = [to_uuid(result.claim.recipient_id) for result in results if _effect(result).is_final]
    waiting = [result.claim for result in results if not _effect(result).is_final]
    seconds = [delay_after(claim.attempt).total_seconds() for claim in waiting]
    with connection.cursor() as cursor:
        cursor.execute(FINISH, [final])
        if waiting:
            cursor.execute(WAIT, [[to_uuid(claim.recipient_id) for claim in waiting], seconds])


def _apply(results: Sequence[Result]) -> dict[str, tuple[str, str]]:
    """Update the recipients; return the email and the address of each."""
    with connection.cursor() as cursor:
        cursor.execute(APPLY, [json.dumps([_row(result) for result in results])])
        return {from_uuid(id_): (from_uuid(email_id), address) for id_, email_id, address in cursor.fetchall()}


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
    }
    if result.outcome.reason:
        row |= {"code": reply.code or None, "enhanced_code": reply.enhanced_code, "message": reply.text}
        row |= {"reason": result.outcome.reason}
    return row


def _events(result: Result, email_id: str, address: str) -> Iterator[NewEvent]:
    reply, reason = result.outcome.reply, result.outcome.reason
    details = {"code": reply.code or None, "enhancedCode": reply.enhanced_code, "message": reply.text, "reason": reason}
    for kind in _effect(result).events:
        yield NewEvent(kind, email_id, result.claim.recipient_id, address, details if reason else {})


def _counts(results: Sequence[Result]) -> Iterator[stats.Change]:
    """Count for queue/stats: accepted by the server, failed for good, or waiting for another attempt; for /metrics."""
    for result in results:
        effect = _effect(result)
        finished = stats.Count.COMPLETED if State.SENT in effect.states else stats.Count.FAILED
        yield stats.change(finished if effect.is_final else stats.Count.DELAYED, result.claim.workspace_id)
        yield health.outcome(result.outcome.verdict, result.outcome.reason)


def _effect(result: Result) -> _Effect:
    return EFFECTS[result.outcome.verdict]
