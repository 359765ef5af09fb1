"""Status rollup: the status, times and error of an email are computed from its recipients, and so are its counters.

Call it after the change, in the transaction that changed the recipients. It locks the emails in the order of their
ids, then reads with a fresh snapshot, so that two writers cannot both miss the other's recipient.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from analytics import counters
from analytics.counters import CounterChange
from emails.states import PRECEDENCE
from lib.ids import from_uuid, to_uuid
from lib.sql import run_replanned

COUNTED_EVENTS = ("delivered", "bounced", "opened", "clicked")
# Events implied by another: a clicked email also counts as opened and delivered.
IMPLIED_EVENTS = {"opened": {"delivered"}, "clicked": {"delivered", "opened"}}

LOCK = """
SELECT id, workspace_id, created_at, status, delivered_at, bounced_at, opened_at, clicked_at
  FROM emails_email WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE
"""
# PRECEDENCE picks the status. error_message is that of a recipient not yet sent to, or of a bounced or failed one.
ROLL_UP = """
UPDATE emails_email e
   SET status = (%(precedence)s::text[])[d.rank], sent_at = d.sent_at, delivered_at = d.delivered_at,
       bounced_at = d.bounced_at, opened_at = d.opened_at, clicked_at = d.clicked_at,
       error_message = d.error_message, retry_count = d.retry_count, finished_at = d.finished_at
  FROM (SELECT email_id, min(array_position(%(precedence)s::text[], state::text)) AS rank,
               min(sent_at) AS sent_at, min(delivered_at) AS delivered_at, min(bounced_at) AS bounced_at,
               min(opened_at) AS opened_at, min(clicked_at) AS clicked_at,
               greatest(max(attempts) - 1, 0) AS retry_count,
               CASE WHEN bool_and(finished_at IS NOT NULL) THEN max(finished_at) END AS finished_at,
               (array_agg(error_message ORDER BY replied_at DESC) FILTER (
                   WHERE state IN ('queued', 'bounced', 'failed') AND error_message IS NOT NULL))[1] AS error_message
          FROM emails_recipient WHERE email_id = ANY(%(ids)s) GROUP BY email_id) d
 WHERE e.id = d.email_id
   AND (e.status, e.sent_at, e.delivered_at, e.bounced_at, e.opened_at, e.clicked_at, e.error_message, e.retry_count,
        e.finished_at)
       IS DISTINCT FROM
       ((%(precedence)s::text[])[d.rank], d.sent_at, d.delivered_at, d.bounced_at, d.opened_at, d.clicked_at,
        d.error_message, d.retry_count, d.finished_at)
RETURNING e.id, e.status, e.delivered_at, e.bounced_at, e.opened_at, e.clicked_at
"""


@dataclass(frozen=True)
class _EmailBefore:
    workspace_id: str
    created_at: datetime
    status: str
    times: tuple[Any, ...]


def roll_up_and_count(email_ids: Collection[str]) -> None:
    """Update emails from their recipients and add the changes to the counters."""
    counters.add(roll_up(email_ids))


def roll_up(email_ids: Collection[str]) -> list[CounterChange]:
    """Update emails from their recipients. Return the counter changes, which the caller adds."""
    ids = [to_uuid(email_id) for email_id in email_ids]
    if not ids:
        return []
    precedence = [state.value for state in PRECEDENCE]
    # Two statements: the second sees commits made while the first waited for its locks.
    locked = run_replanned(LOCK, [ids])
    changed = run_replanned(ROLL_UP, {"ids": ids, "precedence": precedence})
    before = {
        id_: _EmailBefore(from_uuid(workspace, prefix="ws_"), created_at, status, tuple(times))
        for id_, workspace, created_at, status, *times in locked
    }
    return [change for id_, status, *times in changed for change in _changes(before[id_], status, times)]


def _changes(before: _EmailBefore, status: str, times: list[Any]) -> Iterator[CounterChange]:
    if status != before.status:
        yield counters.CounterKey(before.workspace_id, before.created_at, f"status.{before.status}"), -1
        yield counters.CounterKey(before.workspace_id, before.created_at, f"status.{status}"), 1
    for name in events_reached(times) - events_reached(before.times):
        yield counters.CounterKey(before.workspace_id, before.created_at, f"reached.{name}"), 1


def events_reached(times: Sequence[Any]) -> set[str]:
    """Return the events that an email counts for, given the times of its COUNTED_EVENTS."""
    happened = {name for name, time in zip(COUNTED_EVENTS, times, strict=True) if time is not None}
    return happened.union(*(IMPLIED_EVENTS.get(name, set()) for name in happened))
