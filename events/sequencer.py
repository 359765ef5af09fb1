"""The sequencer: gives committed events their positions in the feed (docs/decisions/0142).

The number of an event is assigned before its transaction commits, so a reader that follows the numbers would miss an
event that commits after a higher number. The sequencer appends committed events to the feed, keeps a list of the
missing numbers, and appends those that commit later. A missing number is given up once every transaction that could
have been using it has ended. Events of one batch are ordered by number: of two changes of one recipient the later one
has the higher number, since it waited for the lock of the first.
"""

import logging
import threading
from dataclasses import dataclass
from typing import Any

from django.db import InterfaceError, OperationalError, close_old_connections, transaction

from events.models import FeedHead, FeedProgress, FeedSource
from events.publishing import publish_sequenced
from lib.sql import run
from lib.worker.shutdown import is_stopping, wait_for_stop

log = logging.getLogger("postrider.worker")

EVERY_SECONDS = 0.5
BATCH = 5000

# By source: its table, and the workspace of each event.
TABLES = {
    FeedSource.EMAILS: (
        "emails_event",
        """SELECT e.number, e.kind, m.workspace_id
             FROM seen JOIN emails_event e USING (number) JOIN emails_email m ON m.id = e.email_id""",
    ),
    FeedSource.WORKSPACES: (
        "workspaces_workspaceevent",
        "SELECT e.number, e.kind, e.workspace_id FROM seen JOIN workspaces_workspaceevent e USING (number)",
    ),
}
# Kinds of events that are published to webhooks here and not by the transaction that adds them.
PUBLISHED_KINDS = {
    FeedSource.EMAILS: ("scheduled",),
    FeedSource.WORKSPACES: (
        "suppressed", "domain.verified", "domain.failed", "suppression.added", "suppression.removed",
    ),
}  # fmt: skip
# Sequences are not transactional: numbers of uncommitted events count, too. Without new numbers and gaps, nothing else
# is read.
HAS_WORK = "\nUNION ALL\n".join(
    f"""SELECT 1 FROM {table}_number_seq s LEFT JOIN events_feedprogress p ON p.source = '{source}'
        WHERE s.is_called AND (s.last_value > coalesce(p.last, 0) OR p.gaps <> '{{}}' OR p.new_gaps <> '{{}}')"""  # noqa: S608 - constants
    for source, (table, _) in TABLES.items()
)
LOCK = "SELECT position FROM events_feedhead WHERE id = 1 FOR UPDATE SKIP LOCKED"
# Transactions that have inserted events or are about to: PostgreSQL locks the table before it assigns a number.
WRITERS = """
SELECT coalesce(array_agg(DISTINCT virtualtransaction), '{}') FROM pg_locks
 WHERE locktype = 'relation' AND relation = %s::regclass AND mode = 'RowExclusiveLock'
   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
APPEND = """
WITH late AS (
    SELECT e.number FROM unnest(%(gaps)s::int8multirange + %(new_gaps)s::int8multirange) AS gap
      CROSS JOIN LATERAL (
        SELECT number FROM {table} WHERE number >= lower(gap) AND number < upper(gap)) e
), fresh AS (
    SELECT number FROM {table} WHERE number > %(last)s ORDER BY number LIMIT %(batch)s
), seen AS MATERIALIZED (
    SELECT number FROM late UNION ALL SELECT number FROM fresh
), owned AS MATERIALIZED (
    {owned}
), added AS (
    INSERT INTO events_feedentry (workspace_id, position, source, number, recorded_at)
    SELECT workspace_id, %(position)s + row_number() OVER (ORDER BY number), %(source)s, number, now() FROM owned
), progress AS (
    SELECT greatest(max(number), %(last)s,
                    CASE WHEN (SELECT count(*) FROM fresh) < %(batch)s THEN
                        (SELECT last_value FROM {table}_number_seq WHERE is_called) END) AS last,
           coalesce(range_agg(int8range(number, number + 1)), '{{}}'::int8multirange) AS numbers FROM seen
)
SELECT last, (%(gaps)s::int8multirange - numbers)::text,
       (%(new_gaps)s::int8multirange + int8multirange(int8range(%(last)s + 1, last + 1)) - numbers)::text,
       (SELECT count(*) FROM owned), (SELECT count(*) FROM fresh),
       (SELECT array_agg(number ORDER BY number) FROM owned WHERE kind = ANY(%(published)s))
  FROM progress
"""


@dataclass(frozen=True)
class AppendResult:
    """position: the highest one. is_full: more events may be waiting."""

    position: int
    is_full: bool


def start_sequencer() -> None:
    """Sequence events in a separate thread until the process stops. Any number of processes may do so."""
    threading.Thread(target=_run, name="sequencer", daemon=True).start()


def sequence_events() -> None:
    """Append all committed events to the feed; return at once while another process does so."""
    while run(HAS_WORK) and _append_batch():
        pass


def _run() -> None:
    while not is_stopping():
        try:
            sequence_events()
        except (OperationalError, InterfaceError) as error:
            # A lost connection: the next batch opens another one.
            log.warning("the sequencer waits for the database", extra={"data": {"error": type(error).__name__}})
        # The thread must survive any error: without it readers get no new events.
        except Exception:
            log.exception("the sequencer failed")
        close_old_connections()
        wait_for_stop(EVERY_SECONDS)


@transaction.atomic
def _append_batch() -> bool:
    """Append up to BATCH events of each source; return whether more are waiting."""
    FeedHead.objects.get_or_create(id=1)
    head = run(LOCK)
    if not head:
        return False
    ((position,),) = head
    is_full = False
    for source in TABLES:
        result = _append(source, position=position)
        position, is_full = result.position, is_full or result.is_full
    FeedHead.objects.filter(id=1).update(position=position)
    return is_full


def _append(source: FeedSource, *, position: int) -> AppendResult:
    table, owned = TABLES[source]
    progress, _ = FeedProgress.objects.get_or_create(source=source)
    # Read before the events: the rows of a transaction that has ended by now are visible below.
    is_settled = not progress.writers or _writers(table).isdisjoint(progress.writers)
    values: dict[str, Any] = {
        "gaps": progress.gaps,
        "new_gaps": progress.new_gaps,
        "last": progress.last,
        "batch": BATCH,
        "position": position,
        "source": source.value,
        "published": list(PUBLISHED_KINDS[source]),
    }
    ((last, gaps, new_gaps, added, fresh, published),) = run(APPEND.format(table=table, owned=owned), values)
    changes = {"last": last, "gaps": gaps, "new_gaps": new_gaps}
    if is_settled:
        # Read after the events: whoever may still commit one of the new gaps is running now or has just ended.
        writers = sorted(_writers(table)) if new_gaps != "{}" else []
        changes |= {"gaps": new_gaps, "new_gaps": "{}", "writers": writers}
    FeedProgress.objects.filter(source=source).update(**changes)
    if published:
        publish_sequenced(source, published)
    return AppendResult(position + added, fresh == BATCH)


def _writers(table: str) -> set[str]:
    ((writers,),) = run(WRITERS, [table])
    return set(writers)
