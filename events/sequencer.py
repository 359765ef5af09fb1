"""The sequencer: gives committed events their positions in the feed (docs/decisions/0142).

The number of an event is assigned before its transaction commits, so a reader that follows the numbers would miss an
event that commits after a higher number. The sequencer appends committed events to the feed, keeps a list of the
missing numbers, and appends those that commit later. A missing number is given up once every transaction that could
have been using it has ended. Events of one batch are ordered by number: of two changes of one recipient the later one
has the higher number, since it waited for the lock of the first.
"""

import logging
import threading
from collections.abc import Callable
from typing import Any

from django.db import close_old_connections, transaction

from core.lib.sql import is_outage, run
from core.lib.worker.database_outage import database_outage
from core.lib.worker.failpoints import failpoint
from core.lib.worker.shutdown import is_stopping, wait_for_stop
from events.models import FeedHead, FeedProgress

log = logging.getLogger("postrider.worker")

EVERY_SECONDS = 0.5
BATCH = 5000
# The progress of the log, and of the table in which versions before 1.0 keep events of workspaces.
LOG, FORMER = "log", "former"

# Sequences are not transactional: numbers of uncommitted events count, too. Without new numbers and gaps, nothing else
# is read.
HAS_WORK = f"""
SELECT 1 FROM emails_event_number_seq s LEFT JOIN events_feedprogress p ON p.source = '{LOG}'
 WHERE s.is_called AND (s.last_value > coalesce(p.last, 0) OR p.gaps <> '{{}}' OR p.new_gaps <> '{{}}')
UNION ALL
SELECT 1 FROM workspaces_workspaceevent
 WHERE number > coalesce((SELECT last FROM events_feedprogress WHERE source = '{FORMER}'), 0) LIMIT 1
"""  # noqa: S608 - constants
LOCK = "SELECT position FROM events_feedhead WHERE id = 1 FOR UPDATE SKIP LOCKED"
# Events that processes of a version before 1.0 still record during an upgrade. They get new numbers.
MOVE_FORMER = f"""
WITH former AS (
    DELETE FROM workspaces_workspaceevent
     WHERE number > coalesce((SELECT last FROM events_feedprogress WHERE source = '{FORMER}'), 0)
    RETURNING number, id, workspace_id, kind, payload, created_at
)
INSERT INTO emails_event (id, workspace_id, kind, payload, created_at)
SELECT id, workspace_id, kind, payload, created_at FROM former ORDER BY number
"""  # noqa: S608
# Microseconds: more than there are events, so the position is above all that were issued before, also by a database
# that is lost.
LIFT = """
INSERT INTO events_feedhead (id, position) VALUES (1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
ON CONFLICT (id) DO UPDATE SET position = greatest(events_feedhead.position, excluded.position)
"""
# Transactions that have inserted events or are about to: PostgreSQL locks the table before it assigns a number.
WRITERS = """
SELECT coalesce(array_agg(DISTINCT virtualtransaction), '{}') FROM pg_locks
 WHERE locktype = 'relation' AND relation = 'emails_event'::regclass AND mode = 'RowExclusiveLock'
   AND pid <> pg_backend_pid() AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
# The source is the one of versions before 1.0, which can read these entries.
APPEND = """
WITH late AS (
    SELECT e.number FROM unnest(%(gaps)s::int8multirange + %(new_gaps)s::int8multirange) AS gap
      CROSS JOIN LATERAL (
        SELECT number FROM emails_event WHERE number >= lower(gap) AND number < upper(gap)) e
), fresh AS (
    SELECT number FROM emails_event WHERE number > %(last)s ORDER BY number LIMIT %(batch)s
), seen AS MATERIALIZED (
    SELECT number FROM late UNION ALL SELECT number FROM fresh
), owned AS MATERIALIZED (
    SELECT e.number, coalesce(e.workspace_id, m.workspace_id) AS workspace_id
      FROM seen JOIN emails_event e USING (number) LEFT JOIN emails_email m ON m.id = e.email_id
), added AS (
    INSERT INTO events_feedentry (workspace_id, position, source, number, recorded_at)
    SELECT workspace_id, %(position)s + row_number() OVER (ORDER BY number), 'emails', number, now() FROM owned
), progress AS (
    SELECT greatest(max(number), %(last)s,
                    CASE WHEN (SELECT count(*) FROM fresh) < %(batch)s THEN
                        (SELECT last_value FROM emails_event_number_seq WHERE is_called) END) AS last,
           coalesce(range_agg(int8range(number, number + 1)), '{}'::int8multirange) AS numbers FROM seen
)
SELECT last, (%(gaps)s::int8multirange - numbers)::text,
       (%(new_gaps)s::int8multirange + int8multirange(int8range(%(last)s + 1, last + 1)) - numbers)::text,
       (SELECT count(*) FROM owned), (SELECT count(*) FROM fresh)
  FROM progress
"""
# The age of the oldest event that is not in the feed. Only gaps are older than `last`. The sequencer that does not have
# the feed is at the end of all numbers (events.former_sequencer).
DELAY = f"""
SELECT extract(epoch FROM now() - created_at)::float FROM emails_event
 WHERE number > coalesce((SELECT min(last) FROM events_feedprogress WHERE source IN ('{LOG}', 'emails')), 0)
 ORDER BY number LIMIT 1
"""  # noqa: S608


def start_sequencer(*readers: Callable[[], None]) -> None:
    """Sequence events in a separate thread until the process stops. Any number of processes may do so.

    readers: called after each step, for those who read the feed of all workspaces from a cursor.
    """
    threading.Thread(target=_run, args=readers, name="sequencer", daemon=True).start()


def sequence_events() -> None:
    """Append all committed events to the feed; return at once while another process does so."""
    while run(HAS_WORK) and _append_batch():
        pass


def lift_positions() -> None:
    """Give later events positions above all cursors, also those that readers got before a restore of the database.

    See docs/decisions/0174.
    """
    run(LIFT)


def delay_seconds() -> float:
    """Return the age of the oldest event that the sequencer has not seen, 0 without one."""
    rows = run(DELAY)
    return float(rows[0][0]) if rows else 0.0


def _run(*readers: Callable[[], None]) -> None:
    while not is_stopping():
        for step in (sequence_events, *readers):
            _perform(step)
        close_old_connections()
        wait_for_stop(EVERY_SECONDS)


def _perform(step: Callable[[], None]) -> None:
    try:
        step()
    # The thread must survive any error: without it readers get no new events.
    except Exception as error:
        if is_outage(error):
            # The next step opens another connection.
            database_outage.record_failure(error)
        else:
            log.exception("the sequencer failed")


@transaction.atomic
def _append_batch() -> bool:
    """Append up to BATCH events; return whether more are waiting."""
    FeedHead.objects.get_or_create(id=1)
    head = run(LOCK)
    if not head:
        return False
    ((position,),) = head
    run(MOVE_FORMER)
    progress, _ = FeedProgress.objects.get_or_create(source=LOG)
    # Read before the events: the rows of a transaction that has ended by now are visible below.
    is_settled = not progress.writers or _writers().isdisjoint(progress.writers)
    values: dict[str, Any] = {
        "gaps": progress.gaps,
        "new_gaps": progress.new_gaps,
        "last": progress.last,
        "batch": BATCH,
        "position": position,
    }
    ((last, gaps, new_gaps, added, fresh),) = run(APPEND, values)
    changes = {"last": last, "gaps": gaps, "new_gaps": new_gaps}
    if is_settled:
        # Read after the events: a transaction that may still commit one of the new gaps is running now or has just
        # ended.
        writers = sorted(_writers()) if new_gaps != "{}" else []
        changes |= {"gaps": new_gaps, "new_gaps": "{}", "writers": writers}
    FeedProgress.objects.filter(source=LOG).update(**changes)
    FeedHead.objects.filter(id=1).update(position=position + added)
    failpoint("events.before_sequence_commit")
    return bool(fresh == BATCH)


def _writers() -> set[str]:
    ((writers,),) = run(WRITERS)
    return set(writers)
