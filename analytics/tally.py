"""Add to the counters, and fold what was added.

No hot row: a state change inserts deltas in its own transaction and beat folds them. Readers add the
folded and the unfolded in one statement, so that a figure is exact at every moment.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from django.db import connection

from api.statements import Statement
from keys.ids import to_uuid

ADD = """
INSERT INTO analytics_tallydelta (workspace_id, hour, key, change)
SELECT workspace, date_trunc('hour', created_at, 'UTC'), key, change
  FROM unnest(%s::uuid[], %s::timestamptz[], %s::text[], %s::bigint[]) AS d (workspace, created_at, key, change)
"""
# Of emails that the same transaction creates: their hour is that of now().
ADD_NEW = """
INSERT INTO analytics_tallydelta (workspace_id, hour, key, change)
VALUES (%(workspace)s, date_trunc('hour', now(), 'UTC'), %(key)s, %(change)s)
"""
# What another fold holds is left to it; a delta is either in its row or in the sum, never in both.
FOLD = """
WITH taken AS (
    DELETE FROM analytics_tallydelta WHERE id IN (
        SELECT id FROM analytics_tallydelta ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED)
    RETURNING workspace_id, hour, key, change
), summed AS (
    SELECT workspace_id, hour, key, sum(change) AS change FROM taken GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
), folded AS (
    INSERT INTO analytics_tally (workspace_id, hour, key, count) SELECT * FROM summed
    ON CONFLICT (workspace_id, hour, key) DO UPDATE SET count = analytics_tally.count + EXCLUDED.count
)
SELECT count(*) FROM taken
"""
TOTAL = """
SELECT coalesce(sum(n), 0) FROM (
    SELECT sum(count) AS n FROM analytics_tally WHERE workspace_id = %(workspace)s AND key = ANY(%(keys)s)
    UNION ALL
    SELECT sum(change) FROM analytics_tallydelta WHERE workspace_id = %(workspace)s AND key = ANY(%(keys)s)
) both_kinds
"""
FOLD_AT_ONCE = 50_000

# The hour of what is counted since a workspace began.
EVER = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Slot:
    """Where a change is counted: created_at is the email's; the hour is cut by the database."""

    workspace_id: str
    created_at: datetime
    key: str


def add(changes: Iterable[tuple[Slot, int]]) -> None:
    """Write changes down, one row per slot; to be called in the transaction of what they count."""
    summed: Counter[Slot] = Counter()
    for slot, change in changes:
        summed[slot] += change
    rows = sorted(((slot, change) for slot, change in summed.items() if change), key=lambda row: row[0].key)
    if not rows:
        return
    columns = (
        [to_uuid(slot.workspace_id, prefix="ws_") for slot, _ in rows],
        [slot.created_at for slot, _ in rows],
        [slot.key for slot, _ in rows],
        [change for _, change in rows],
    )
    with connection.cursor() as cursor:
        cursor.execute(ADD, columns)


def adding_new(workspace_id: str, *, key: str, change: int) -> Statement:
    """Return the statement that counts emails which its transaction creates."""
    return Statement(ADD_NEW, {"workspace": to_uuid(workspace_id, prefix="ws_"), "key": key, "change": change})


def total(workspace_id: str, *, keys: Collection[str]) -> int:
    """Sum counters over all hours: folded and unfolded in one statement, so exact."""
    with connection.cursor() as cursor:
        cursor.execute(TOTAL, {"workspace": to_uuid(workspace_id, prefix="ws_"), "keys": list(keys)})
        (count,) = cursor.fetchone()
    return int(count)


def fold() -> int:
    """Fold waiting deltas into the tallies; return how many. Any number of folds may run at once."""
    with connection.cursor() as cursor:
        cursor.execute(FOLD, [FOLD_AT_ONCE])
        (count,) = cursor.fetchone()
    return int(count)
