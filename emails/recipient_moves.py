"""Moves of recipients from status to status: no other statement changes a recipient's status (docs/decisions/0073).

The statement is rendered from emails.states.TRANSITIONS. Callers hold the locks of the recipients' queue entries, and
call emails.status_rollup afterwards.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from core.lib.ids import from_uuid, to_uuid
from core.lib.sql import run_replanned
from emails.states import TRANSITIONS, EmailStatus

# Diversions (emails.sending.diversion). Run before the message leaves, so that a report about it finds the mark.
MARK_DIVERTED = """
WITH locked AS (
    SELECT r.id, r.diversion AS former, d.diversion FROM emails_recipient r
      JOIN unnest(%s::uuid[], %s::text[]) AS d (id, diversion) ON d.id = r.id ORDER BY r.id FOR NO KEY UPDATE OF r
)
UPDATE emails_recipient r SET diversion = locked.diversion FROM locked WHERE r.id = locked.id
RETURNING r.email_id, locked.former IS NULL
"""


@dataclass(frozen=True)
class RecipientMove:
    """The statuses that a recipient enters one after the other, and the reply that caused the move.

    path: empty for an attempt that changes no status. Its first status must be able to replace the present one.
    attempt: set for the outcome of an attempt, whose times and reply are recorded with any status of the recipient.
    failure: details of the event: code, enhancedCode, message and reason; empty to keep those of an earlier reply.
    is_timeless: the times that it sets are UNKNOWN_TIME (docs/decisions/0376).
    """

    recipient_id: str
    path: Sequence[EmailStatus]
    attempt: int | None = None
    failure: Mapping[str, Any] = field(default_factory=dict)
    provider_id: str | None = None
    transport: str | None = None
    receiver: str | None = None
    is_timeless: bool = False


@dataclass(frozen=True)
class MovedRecipient:
    """A recipient after its move."""

    email_id: str
    address: str
    state: EmailStatus
    receiver: str | None


def _render_time(column: str) -> str:
    statuses = ",".join(status for status, transition in TRANSITIONS.items() if column in transition.times)
    time = "CASE WHEN m.timeless THEN 'epoch' ELSE now() END"
    return f"{column} = CASE WHEN m.path && '{{{statuses}}}' THEN coalesce(r.{column}, {time}) ELSE r.{column} END"


TIMES = sorted({column for transition in TRANSITIONS.values() for column in transition.times})
MOVE = f"""
WITH finished AS (DELETE FROM emails_pending WHERE recipient_id = ANY(%(finished)s))
UPDATE emails_recipient r
   SET state = CASE WHEN r.state = ANY(m.sources) THEN m.path[cardinality(m.path)] ELSE r.state END,
       {", ".join(map(_render_time, TIMES))},
       attempts = coalesce(m.attempt, r.attempts),
       replied_at = CASE WHEN m.message IS NULL THEN r.replied_at ELSE now() END,
       reply_code = coalesce(m.code, r.reply_code),
       enhanced_code = CASE WHEN m.message IS NULL THEN r.enhanced_code ELSE m."enhancedCode" END,
       error_message = coalesce(m.message, r.error_message),
       reason = coalesce(m.reason, r.reason),
       provider_message_id = coalesce(m.provider_id, r.provider_message_id),
       transport = coalesce(m.transport, r.transport),
       receiver = coalesce(m.receiver, r.receiver)
  FROM json_to_recordset(%(rows)s) AS m (id uuid, path text[], sources text[], attempt smallint, code smallint,
       "enhancedCode" text, message text, reason text, provider_id text, transport text, receiver text,
       timeless boolean)
 WHERE r.id = m.id AND (m.attempt IS NOT NULL OR r.state = ANY(m.sources))
RETURNING r.id, r.email_id, r.address, r.state, r.receiver
"""  # noqa: S608 - constants of emails.states


# The same, with the id of an email for all of its recipients.
MOVE_ALL = MOVE.replace("r.id = m.id", "r.email_id = m.id")


def move_recipients(moves: Sequence[RecipientMove]) -> dict[str, MovedRecipient]:
    """Move recipients as far as TRANSITIONS allows, and return those that were updated by id.

    A recipient that finishes leaves the queue: its entry is deleted.
    """
    finished = [to_uuid(move.recipient_id) for move in moves if _finishes(move)]
    rows = run_replanned(MOVE, {"finished": finished, "rows": json.dumps([_row(move) for move in moves])})
    return {
        from_uuid(id_): MovedRecipient(from_uuid(email_id), address, EmailStatus(state), receiver)
        for id_, email_id, address, state, receiver in rows
    }


def move_all_recipients(email_ids: Collection[str], *, target: EmailStatus, reason: str | None = None) -> None:
    """Move all recipients of emails. The caller has updated or deleted their queue entries.

    reason: of the move; None for one that needs none.
    """
    move = {"path": [target], "sources": TRANSITIONS[target].sources, "reason": reason}
    rows = [{"id": str(to_uuid(email_id)), **move} for email_id in email_ids]
    run_replanned(MOVE_ALL, {"finished": [], "rows": json.dumps(rows)})


def _finishes(move: RecipientMove) -> bool:
    return bool(move.path) and "finished_at" in TRANSITIONS[move.path[-1]].times


def _row(move: RecipientMove) -> dict[str, Any]:
    return {
        **move.failure,
        "id": str(to_uuid(move.recipient_id)),
        "path": move.path,
        "sources": TRANSITIONS[move.path[0]].sources if move.path else (),
        "attempt": move.attempt,
        "provider_id": move.provider_id,
        "transport": move.transport,
        "receiver": move.receiver,
        "timeless": move.is_timeless,
    }
