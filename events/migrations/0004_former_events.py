"""Copy the events of workspaces to the log, and let its sequencer take over.

The version before keeps them in workspaces_workspaceevent, and its entries in the feed refer to their numbers there. A
copy has the negated number, so the entries stay as they are. The version before can go on reading and recording
events, but not sequencing them: its progress is set to the end, so that it finds no work and logs no error. Rows that
it records from now on are moved by the new sequencer, and the copied ones are deleted after a day (events.tasks).
The table is dropped in the next version.

Going back to the version before needs `manage.py migrate events 0003`: its sequencer then continues.
"""

# ruff: noqa: S608 - constants

from typing import Any

from django.db import connection, migrations, transaction

from lib.progress import ProgressBar

BATCH = 10_000
# Higher than any number; the old statement adds 1 to it.
END = 9_000_000_000_000_000_000
READ_PROGRESS = """
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
TAKE_OVER = f"""
INSERT INTO events_feedprogress (source, last, gaps, new_gaps, writers)
SELECT 'log', last, gaps, new_gaps, writers FROM events_feedprogress WHERE source = 'emails'
UNION ALL
SELECT 'former', coalesce(max(number), 0), '{{}}', '{{}}', '{{}}'::text[] FROM workspaces_workspaceevent
    ON CONFLICT (source) DO UPDATE SET last = EXCLUDED.last, gaps = EXCLUDED.gaps, new_gaps = EXCLUDED.new_gaps,
                                       writers = EXCLUDED.writers;
INSERT INTO events_feedprogress (source, last, gaps, new_gaps, writers)
VALUES ('emails', {END}, '{{}}', '{{}}', '{{}}'), ('workspaces', {END}, '{{}}', '{{}}', '{{}}')
    ON CONFLICT (source) DO UPDATE SET last = EXCLUDED.last, gaps = '{{}}', new_gaps = '{{}}', writers = '{{}}'
"""
GIVE_BACK = """
UPDATE events_feedprogress p SET last = n.last, gaps = n.gaps, new_gaps = n.new_gaps, writers = n.writers
  FROM events_feedprogress n
 WHERE p.source = 'emails' AND n.source = 'log' OR p.source = 'workspaces' AND n.source = 'former'
"""


def take_over(apps: Any, schema_editor: Any) -> None:
    with connection.cursor() as cursor:
        sequenced, gaps = read_progress(cursor)
        copy_sequenced(cursor, sequenced, gaps)
        with transaction.atomic():
            cursor.execute("SET LOCAL lock_timeout = '60s'")
            # Wait for the old sequencer and for transactions that have added rows.
            cursor.execute("SELECT FROM events_feedhead WHERE id = 1 FOR UPDATE")
            cursor.execute("LOCK TABLE workspaces_workspaceevent IN SHARE ROW EXCLUSIVE MODE")
            now_sequenced, now_gaps = read_progress(cursor)
            cursor.execute(COPY, [sequenced, now_sequenced, now_gaps])
            cursor.execute(COPY_LATE, [gaps, now_gaps])
            cursor.execute(MOVE_UNSEQUENCED, [now_sequenced, now_gaps])
            cursor.execute(TAKE_OVER)


def read_progress(cursor: Any) -> tuple[int, str]:
    """Return the highest number that the old sequencer has read, and the lower ones that it has not."""
    cursor.execute(READ_PROGRESS)
    return cursor.fetchone() or (0, "{}")


def copy_sequenced(cursor: Any, sequenced: int, gaps: str) -> None:
    """Copy in batches, without a lock; a repetition skips copied rows."""
    with ProgressBar("Copying events", total=sequenced) as bar:
        for start in range(0, sequenced, BATCH):
            cursor.execute(COPY, [start, min(start + BATCH, sequenced), gaps])
            bar.advance(min(BATCH, sequenced - start))


def give_back(apps: Any, schema_editor: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(GIVE_BACK)


class Migration(migrations.Migration):
    # Each batch is a transaction.
    atomic = False

    dependencies = [("events", "0003_indexes"), ("workspaces", "0014_language_and_time_zone")]

    operations = [migrations.RunPython(take_over, give_back)]
