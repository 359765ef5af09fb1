"""Status rollup: the status, times and error of an email are computed from its recipients, and so are its counters.

Call it after the change, in the transaction that changed the recipients. It locks the emails in the order of their
ids, then reads with a fresh snapshot, so that two writers cannot both miss the other's recipient.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from core.counters import counters
from core.counters.counters import COUNTED_EVENTS, CounterChange
from core.counters.slices import slices_sql
from core.lib.ids import from_uuid, to_uuid
from core.lib.sql import run_replanned
from emails.states import TRANSITIONS

COUNTED_TIMES = ", ".join(f"e.{name}_at" for name in COUNTED_EVENTS)
TIMES = ("sent_at", "delivered_at", "bounced_at", "opened_at", "clicked_at")
COLUMNS = ("status", *TIMES, "error_message", "retry_count", "finished_at")
BEFORE, AFTER = (", ".join(f"{table}.{column}" for column in COLUMNS) for table in ("e", "d"))
PRECEDENCE = f"'{{{','.join(TRANSITIONS)}}}'::text[]"

# The earliest known time; UNKNOWN_TIME (docs/decisions/0376) if none is known.
EARLIEST = "coalesce(min(nullif({time}, 'epoch')), min({time})) AS {time}"

LOCK = f"""
SELECT e.id, e.workspace_id, e.created_at, e.status, e.is_test, e.is_diverted, e.stream, e.from_domain,
       {slices_sql("e")}, {COUNTED_TIMES}
  FROM emails_email e WHERE e.id = ANY(%s) ORDER BY e.id FOR NO KEY UPDATE
"""  # noqa: S608 - constants
# error_message: the one of a recipient not yet sent to, or of a bounced or failed one.
ROLL_UP = f"""
UPDATE emails_email e SET ({", ".join(COLUMNS)}) = ({AFTER})
  FROM (SELECT email_id, ({PRECEDENCE})[min(array_position({PRECEDENCE}, state::text))] AS status,
               {", ".join(EARLIEST.format(time=time) for time in TIMES)},
               greatest(max(attempts) - 1, 0) AS retry_count,
               CASE WHEN bool_and(finished_at IS NOT NULL) THEN max(finished_at) END AS finished_at,
               (array_agg(error_message ORDER BY replied_at DESC) FILTER (
                   WHERE state IN ('queued', 'bounced', 'failed') AND error_message IS NOT NULL))[1] AS error_message
          FROM emails_recipient WHERE email_id = ANY(%s) GROUP BY email_id) d
 WHERE e.id = d.email_id AND ({BEFORE}) IS DISTINCT FROM ({AFTER})
RETURNING e.id, e.status, {COUNTED_TIMES}
"""  # noqa: S608 - constants


@dataclass(frozen=True)
class _EmailBefore:
    workspace_id: str
    created_at: datetime
    status: str
    is_test: bool
    is_diverted: bool
    stream: str
    from_domain: str
    slices: tuple[UUID, ...]
    times: tuple[Any, ...]

    @property
    def is_counted(self) -> bool:
        """Whether analytics and the reputation count the email."""
        return not self.is_test and not self.is_diverted

    def change(self, key: str, by: int) -> CounterChange:
        name = counters.counter_key(key, is_test=self.is_test, is_diverted=self.is_diverted)
        slices = self.slices if self.is_counted else ()
        return counters.CounterKey(self.workspace_id, self.created_at, name, slices), by


@dataclass(frozen=True)
class RollUp:
    """The counter changes of updated emails, and the slices and streams of those that count, by id.

    domains: the sending domains of all but test emails, by id.
    """

    changes: list[CounterChange]
    slices: dict[str, tuple[UUID, ...]]
    streams: dict[str, str]
    domains: dict[str, str]


def roll_up_and_count(email_ids: Collection[str]) -> None:
    """Update emails from their recipients and add the changes to the counters."""
    counters.add(roll_up(email_ids).changes)


def roll_up(email_ids: Collection[str]) -> RollUp:
    """Update emails from their recipients. Return the counter changes, which the caller adds."""
    ids = [to_uuid(email_id) for email_id in email_ids]
    if not ids:
        return RollUp([], {}, {}, {})
    # Two statements: the second sees commits made while the first waited for its locks.
    locked = run_replanned(LOCK, [ids])
    changed = run_replanned(ROLL_UP, [ids])
    before = {
        id_: _EmailBefore(
            from_uuid(workspace, prefix="ws_"),
            created_at,
            status,
            is_test,
            is_diverted,
            stream,
            from_domain,
            tuple(slices),
            tuple(times),
        )
        for id_, workspace, created_at, status, is_test, is_diverted, stream, from_domain, slices, *times in locked
    }
    changes = [change for id_, status, *times in changed for change in _changes(before[id_], status, times)]
    counted = {from_uuid(id_): email for id_, email in before.items() if email.is_counted}
    slices = {id_: email.slices for id_, email in counted.items()}
    streams = {id_: email.stream for id_, email in counted.items()}
    domains = {from_uuid(id_): email.from_domain for id_, email in before.items() if not email.is_test}
    return RollUp(changes, slices, streams, domains)


def _changes(before: _EmailBefore, status: str, times: list[Any]) -> Iterator[CounterChange]:
    if status != before.status:
        yield before.change(f"status.{before.status}", -1)
        yield before.change(f"status.{status}", 1)
    for name, earlier, time in zip(COUNTED_EVENTS, before.times, times, strict=True):
        if time and not earlier:
            yield before.change(f"reached.{name}", 1)
