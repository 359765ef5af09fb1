"""The event feed of versions before 1.0: their sequencer and reader, as they run beside this version in an upgrade."""

import json
from typing import Any

from core.lib.ids import from_uuid, to_uuid
from core.lib.sql import run

# By source: its table, and the workspace of each event.
TABLES = {
    "emails": (
        "emails_event",
        """SELECT e.number, m.workspace_id
             FROM seen JOIN emails_event e USING (number) JOIN emails_email m ON m.id = e.email_id""",
    ),
    "workspaces": (
        "workspaces_workspaceevent",
        "SELECT e.number, e.workspace_id FROM seen JOIN workspaces_workspaceevent e USING (number)",
    ),
}
APPEND = """
WITH late AS (
    SELECT e.number FROM unnest(%(gaps)s::int8multirange + %(new_gaps)s::int8multirange) AS gap
      CROSS JOIN LATERAL (
        SELECT number FROM {table} WHERE number >= lower(gap) AND number < upper(gap)) e
), fresh AS (
    SELECT number FROM {table} WHERE number > %(last)s ORDER BY number LIMIT 5000
), seen AS MATERIALIZED (
    SELECT number FROM late UNION ALL SELECT number FROM fresh
), owned AS MATERIALIZED (
    {owned}
), added AS (
    INSERT INTO events_feedentry (workspace_id, position, source, number, recorded_at)
    SELECT workspace_id, %(position)s + row_number() OVER (ORDER BY number), %(source)s, number, now() FROM owned
), progress AS (
    SELECT greatest(max(number), %(last)s,
                    CASE WHEN (SELECT count(*) FROM fresh) < 5000 THEN
                        (SELECT last_value FROM {table}_number_seq WHERE is_called) END) AS last,
           coalesce(range_agg(int8range(number, number + 1)), '{{}}'::int8multirange) AS numbers FROM seen
)
SELECT last, (%(gaps)s::int8multirange - numbers)::text,
       (%(new_gaps)s::int8multirange + int8multirange(int8range(%(last)s + 1, last + 1)) - numbers)::text,
       (SELECT count(*) FROM owned)
  FROM progress
"""
PROGRESS = """
INSERT INTO events_feedprogress (source, last, gaps, new_gaps, writers) VALUES (%s, 0, '{}', '{}', '{}')
ON CONFLICT (source) DO UPDATE SET source = EXCLUDED.source RETURNING last, gaps, new_gaps
"""
HEAD = """
INSERT INTO events_feedhead (id, position) VALUES (1, 0)
ON CONFLICT (id) DO UPDATE SET position = events_feedhead.position RETURNING position
"""
RECORD = """
INSERT INTO workspaces_workspaceevent (id, workspace_id, kind, payload, created_at)
VALUES (gen_random_uuid(), %s, 'domain.failed', '{"name": "old.example"}', now()) RETURNING id
"""
FEED = """
SELECT coalesce(e.id, w.id), coalesce(e.kind, w.kind), coalesce(e.payload, w.payload)
  FROM events_feedentry f
  LEFT JOIN (emails_event e JOIN emails_email m ON m.id = e.email_id) ON f.source = 'emails' AND e.number = f.number
  LEFT JOIN workspaces_workspaceevent w ON f.source = 'workspaces' AND w.number = f.number
 WHERE f.workspace_id = %s AND coalesce(e.id, w.id) IS NOT NULL ORDER BY f.position
"""


def sequence_before() -> None:
    """Append all events of both sources to the feed; no transaction that could add a late one is running."""
    for source, (table, owned) in TABLES.items():
        ((last, gaps, new_gaps),) = run(PROGRESS, [source])
        ((position,),) = run(HEAD)
        values = {"source": source, "position": position, "last": last, "gaps": gaps, "new_gaps": new_gaps}
        ((last, gaps, new_gaps, added),) = run(APPEND.format(table=table, owned=owned), values)
        changes = [last, gaps, new_gaps, source]
        run("UPDATE events_feedprogress SET last = %s, gaps = %s, new_gaps = %s WHERE source = %s", changes)
        run("UPDATE events_feedhead SET position = %s", [position + added])


def record_before(workspace_id: str) -> str:
    """Record an event of a workspace; return its id."""
    ((id_,),) = run(RECORD, [to_uuid(workspace_id, prefix="ws_")])
    return from_uuid(id_, prefix="evt_")


def read_before(workspace_id: str) -> list[tuple[str, str, Any]]:
    """Return id, kind and payload of the events in the feed that a web server before 1.0 finds, in order."""
    rows = run(FEED, [to_uuid(workspace_id, prefix="ws_")])
    return [(from_uuid(id_, prefix="evt_"), kind, json.loads(payload)) for id_, kind, payload in rows]
