"""The feed belongs to one of two sequencers: that of this version, or that of versions before 1.0.

Each keeps its progress in two rows: `log` and `former` here, `emails` and `workspaces` in a version before 1.0. The
sequencer that does not have the feed has END as its progress, so that it finds no work and logs no error.
`manage.py migrate` takes the feed over, `manage.py prepare_downgrade` returns it (docs/decisions/0142).
"""

# ruff: noqa: S608 - constants

from django.db import transaction

from core.lib.progress import ProgressBar
from core.lib.sql import run

BATCH = 10_000
# Higher than any number; the statements of both sequencers add 1 to it.
END = 9_000_000_000_000_000_000
SOURCES, FORMER_SOURCES = ("log", "former"), ("emails", "workspaces")
# The progress of the log when the feed was returned.
RETURNED = "returned"

HAS_FEED = f"SELECT 1 FROM events_feedprogress WHERE source = 'emails' AND last = {END}"
# Waits for a step of either sequencer.
LOCK_FEED = "SELECT 1 FROM events_feedhead WHERE id = 1 FOR UPDATE"
START = """
INSERT INTO events_feedprogress (source, last, gaps, new_gaps, writers)
SELECT source, 0, '{}', '{}', '{}' FROM unnest(%s::text[]) AS source ON CONFLICT (source) DO NOTHING
"""
COPY_PROGRESS = """
INSERT INTO events_feedprogress (source, last, gaps, new_gaps, writers)
SELECT %s, last, gaps, new_gaps, writers FROM events_feedprogress WHERE source = %s
    ON CONFLICT (source) DO UPDATE SET last = EXCLUDED.last, gaps = EXCLUDED.gaps, new_gaps = EXCLUDED.new_gaps,
                                       writers = EXCLUDED.writers
"""
STOP = f"""
UPDATE events_feedprogress SET last = {END}, gaps = '{{}}', new_gaps = '{{}}', writers = '{{}}' WHERE source = ANY(%s)
"""
# The version before 1.0 keeps events of workspaces in workspaces_workspaceevent, and its entries in the feed refer to
# their numbers there. A copy in the log has the negated number, so the entries stay as they are.
READ_FORMER = """
SELECT last, (gaps::int8multirange + new_gaps::int8multirange)::text
  FROM events_feedprogress WHERE source = 'workspaces'
"""
COLUMNS = "id, workspace_id, kind, payload, created_at"
COPY = f"""
INSERT INTO emails_event (number, {COLUMNS})
SELECT -number, {COLUMNS} FROM workspaces_workspaceevent
 WHERE number > %s AND number <= %s AND NOT %s::int8multirange @> number
    ON CONFLICT (number) DO NOTHING
"""
# Numbers that were gaps when the copy began.
COPY_LATE = f"""
INSERT INTO emails_event (number, {COLUMNS})
SELECT -number, {COLUMNS} FROM workspaces_workspaceevent
 WHERE %s::int8multirange @> number AND NOT %s::int8multirange @> number
    ON CONFLICT (number) DO NOTHING
"""
MOVE_UNSEQUENCED = f"""
WITH former AS (
    DELETE FROM workspaces_workspaceevent WHERE number > %s OR %s::int8multirange @> number RETURNING number, {COLUMNS}
)
INSERT INTO emails_event ({COLUMNS}) SELECT {COLUMNS} FROM former ORDER BY number
"""
# The numbers in the table of versions before 1.0 whose events are in the log.
SET_FORMER = """
UPDATE events_feedprogress
   SET last = (SELECT greatest(max(number), 0) FROM workspaces_workspaceevent),
       gaps = '{}', new_gaps = '{}', writers = '{}'
 WHERE source = 'former'
"""
# The sequencer before 1.0 skips events of workspaces in the log: processes of this version that ran beside it.
ADD_SKIPPED = f"""
WITH returned AS (
    DELETE FROM events_feedprogress WHERE source = '{RETURNED}'
    RETURNING last, gaps::int8multirange + new_gaps::int8multirange AS gaps
), skipped AS (
    SELECT range_agg(int8range(e.number, e.number + 1)) AS numbers
      FROM returned r, events_feedprogress p, emails_event e
     WHERE p.source = 'log' AND e.email_id IS NULL AND e.number >= coalesce(lower(r.gaps), r.last)
       AND e.number <= p.last AND (e.number > r.last OR r.gaps @> e.number)
)
UPDATE events_feedprogress SET gaps = (gaps::int8multirange + numbers)::text FROM skipped
 WHERE source = 'log' AND numbers IS NOT NULL
"""


def has_feed() -> bool:
    """Return whether the feed belongs to the sequencer of this version."""
    return bool(run(HAS_FEED))


def take_over_feed() -> bool:
    """Let the sequencer of this version continue where the other one stopped; return False if it has the feed.

    Processes of a version before 1.0 may go on reading and recording events, but not sequencing them. Rows that they
    record from now on are moved by the new sequencer; the copied ones are deleted after a day (events.tasks).
    Not in a transaction: the events that are in the feed are copied in batches, without a lock.
    """
    if has_feed():
        return False
    sequenced, gaps = _read_former()
    _copy_sequenced(sequenced, gaps)
    with transaction.atomic():
        run("SET LOCAL lock_timeout = '60s'")
        run(LOCK_FEED)
        # Waits for transactions that have added rows.
        run("LOCK TABLE workspaces_workspaceevent IN SHARE ROW EXCLUSIVE MODE")
        if has_feed():
            return False
        now_sequenced, now_gaps = _read_former()
        run(COPY, [sequenced, now_sequenced, now_gaps])
        run(COPY_LATE, [gaps, now_gaps])
        run(MOVE_UNSEQUENCED, [now_sequenced, now_gaps])
        run(START, [[*SOURCES, *FORMER_SOURCES]])
        run(COPY_PROGRESS, ["log", "emails"])
        run(ADD_SKIPPED)
        run(SET_FORMER)
        run(STOP, [[*FORMER_SOURCES]])
    return True


@transaction.atomic
def return_feed() -> bool:
    """Let the sequencer of a version before 1.0 continue where this one stopped; return False if it has the feed.

    Changes the progress only. Events of workspaces that processes of this version record from now on are in the feed
    after take_over_feed().
    """
    run(LOCK_FEED)
    if not has_feed():
        return False
    run(START, [[*SOURCES]])
    for target, source in ((RETURNED, "log"), *zip(FORMER_SOURCES, SOURCES, strict=True)):
        run(COPY_PROGRESS, [target, source])
    run(STOP, [[*SOURCES]])
    return True


def _read_former() -> tuple[int, str]:
    """Return the highest number that the old sequencer has read, and the lower ones that it has not."""
    rows = run(READ_FORMER)
    return rows[0] if rows else (0, "{}")


def _copy_sequenced(sequenced: int, gaps: str) -> None:
    """Copy in batches; a repetition skips copied rows."""
    with ProgressBar("Copying events", total=sequenced) as bar:
        for start in range(0, sequenced, BATCH):
            run(COPY, [start, min(start + BATCH, sequenced), gaps])
            bar.advance(min(BATCH, sequenced - start))
