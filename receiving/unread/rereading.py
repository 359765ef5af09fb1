"""Rereading of messages that could not be read, by request and by command (docs/decisions/0277).

A message returns to the queue of messages to read; its emails keep their status until it was read.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction

from core.api.errors import NotFound
from core.lib.coded_texts import CodedText
from core.lib.ids import to_uuid
from core.lib.sql import database_time, run
from core.lib.worker import wakeup
from core.workspaces.audit import AuditAction, record_action
from receiving.errors import NotUnreadable, RereadTooSoon
from receiving.models import ReceivedEmail
from receiving.states import UNREAD_ERRORS
from receiving.unread.queue import MAX_READINGS

# A message that could not be read again is reread an hour later at the earliest.
PAUSE = timedelta(hours=1)
# Between messages of one workspace that are claimed alone, and between those of the command.
ALONE_GAP = timedelta(seconds=30)
JOINT_GAP = timedelta(milliseconds=100)
BATCH_SIZE = 500

UNREAD = "m.parse_errors && %(errors)s::text[]"
STATE = f"""
SELECT {UNREAD}, CASE WHEN m.read_at IS NULL THEN m.reread_at END, CASE WHEN m.reread_at IS NOT NULL
       THEN ceil(extract(epoch FROM m.read_at + %(pause)s - statement_timestamp()))::int END
  FROM receiving_message m JOIN receiving_receivedemail e ON e.message_id = m.id WHERE e.id = %(email)s
"""  # noqa: S608 - a constant
LOCKED_STATE = f"{STATE} FOR UPDATE OF m"
# A late result of an earlier claim is not recorded.
QUEUED = "read_at = NULL, reread_at = now(), fence = fence + 1"
# The next claim is alone, and the last one before the message is given up again.
CLAIMS_BEFORE = MAX_READINGS - 1
QUEUE_ALONE = f"""
UPDATE receiving_message m
   SET {QUEUED}, attempts = {CLAIMS_BEFORE}, due_at = greatest(now(), %(gap)s + (
       SELECT max(w.due_at) FROM receiving_message w
        WHERE w.read_at IS NULL AND w.attempts >= {CLAIMS_BEFORE} AND w.reread_at IS NOT NULL
          AND w.workspace_id = m.workspace_id))
  FROM receiving_receivedemail e WHERE e.id = %(email)s AND m.id = e.message_id RETURNING m.reread_at
"""  # noqa: S608 - constants
FOUND = f"""
m.read_at IS NOT NULL AND {UNREAD} AND m.received_at >= coalesce(%(since)s, '-infinity'::timestamptz)
   AND EXISTS (SELECT FROM receiving_receivedemail e
                WHERE e.message_id = m.id AND e.workspace_id = coalesce(%(workspace)s::uuid, e.workspace_id))
"""
COUNT = f"SELECT count(*) FROM receiving_message m WHERE {FOUND}"  # noqa: S608 - a constant
QUEUE_JOINT = f"""
WITH found AS (
    SELECT m.id FROM receiving_message m
     WHERE m.id > %(after)s AND {FOUND} ORDER BY m.id LIMIT %(limit)s FOR UPDATE OF m
), numbered AS (SELECT id, row_number() OVER (ORDER BY id) + %(done)s AS number FROM found)
UPDATE receiving_message m SET {QUEUED}, attempts = 0, due_at = greatest(now(), %(began)s + number * %(gap)s)
  FROM numbered WHERE m.id = numbered.id RETURNING m.id
"""  # noqa: S608 - constants


@dataclass(frozen=True)
class RereadState:
    """Whether the message of an email may be reread.

    is_unread: it could not be read to its end.
    queued_at: when it was queued to be read again; None if it is not.
    wait_seconds: the time until it may be queued once more; None if it was not reread before.
    """

    is_unread: bool
    queued_at: datetime | None
    wait_seconds: int | None

    @property
    def is_too_soon(self) -> bool:
        return self.wait_seconds is not None and self.wait_seconds > 0

    @property
    def is_allowed(self) -> bool:
        return self.is_unread and self.queued_at is None and not self.is_too_soon


def reread_state(email: ReceivedEmail) -> RereadState:
    """Return whether the message of an email may be reread. Raises NotFound if the email was deleted."""
    return _read_state(email, STATE)


@transaction.atomic
def reread_email(email: ReceivedEmail) -> datetime:
    """Queue the message of an email to be read again, unless it is queued; return when it was queued.

    Raises NotUnreadable, and RereadTooSoon within PAUSE after it was reread.
    """
    state = _read_state(email, LOCKED_STATE)
    if not state.is_unread:
        raise NotUnreadable(CodedText("receiving.not_unreadable", status=email.status), emailStatus=email.status)
    if state.queued_at:
        return state.queued_at
    if state.is_too_soon:
        detail = CodedText("receiving.reread_too_soon", seconds=state.wait_seconds)
        raise RereadTooSoon(detail, headers={"Retry-After": str(state.wait_seconds)})
    ((queued_at,),) = run(QUEUE_ALONE, {"email": to_uuid(email.id, prefix="inb_"), "gap": ALONE_GAP})
    record_action(email.workspace, AuditAction.INBOUND_REREAD, about=email.id)
    transaction.on_commit(lambda: wakeup.notify("receiving"))
    reread_at: datetime = queued_at
    return reread_at


@dataclass(frozen=True)
class UnreadableMessages:
    """The messages that could not be read, of all workspaces or of one, that were received since a time."""

    workspace_id: str | None = None
    since: datetime | None = None

    def count(self) -> int:
        return int(run(COUNT, self._values)[0][0])

    def reread(self) -> Iterator[int]:
        """Queue them to be read again, one every JOINT_GAP; yield the size of each batch once it is committed.

        They are read beside new messages. Safe to stop and to run again.
        """
        after, done, began = UUID(int=0), 0, database_time()
        while batch := self._queue_batch(after=after, done=done, began=began):
            after, done = max(batch), done + len(batch)
            wakeup.notify("receiving")
            yield len(batch)

    def _queue_batch(self, **values: Any) -> list[UUID]:
        values |= {"gap": JOINT_GAP, "limit": BATCH_SIZE, **self._values}
        return [id_ for (id_,) in run(QUEUE_JOINT, values)]

    @property
    def _values(self) -> Mapping[str, Any]:
        workspace = to_uuid(self.workspace_id, prefix="ws_") if self.workspace_id else None
        return {"errors": [*UNREAD_ERRORS], "since": self.since, "workspace": workspace}


def _read_state(email: ReceivedEmail, statement: str) -> RereadState:
    values = {"email": to_uuid(email.id, prefix="inb_"), "pause": PAUSE, "errors": [*UNREAD_ERRORS]}
    rows = run(statement, values)
    if not rows:
        raise NotFound
    return RereadState(*rows[0])
