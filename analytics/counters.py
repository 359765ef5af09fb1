"""Add to the counters, fold what was added, read them.

No hot row: a state change inserts deltas in its own transaction and beat folds them, into a row per hour and
one per day. Readers add the folded and the unfolded in one statement, so that a figure is exact at every
moment; they take whole days where they can, so that years cost what weeks do. See docs/decisions/0042.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Any
from uuid import UUID

from django.db import connection

from lib.ids import from_uuid, to_uuid
from lib.sql import run_planned
from lib.worker.failpoints import failpoint

ADD = """
INSERT INTO analytics_tallydelta (workspace_id, hour, key, change)
SELECT * FROM unnest(%s::uuid[], %s::timestamptz[], %s::text[], %s::bigint[])
"""
# Of emails that the same transaction creates; those of an hour are counted in that of now().
ADD_NEW = """
INSERT INTO analytics_tallydelta (workspace_id, hour, key, change)
SELECT %(workspace)s, CASE WHEN is_ever THEN 'epoch' ELSE date_trunc('hour', now(), 'UTC') END, key, change
  FROM json_to_recordset(%(changes)s) AS d (key text, change bigint, is_ever boolean)
"""
# What another fold holds is left to it; a delta is either in its row or in the sums, never in both.
FOLD = """
WITH taken AS (
    DELETE FROM analytics_tallydelta WHERE id IN (
        SELECT id FROM analytics_tallydelta ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED)
    RETURNING workspace_id, hour, key, change
), by_hour AS (
    INSERT INTO analytics_tally (workspace_id, hour, key, count)
    SELECT workspace_id, hour, key, sum(change) FROM taken GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    ON CONFLICT (workspace_id, hour, key) DO UPDATE SET count = analytics_tally.count + EXCLUDED.count
), by_day AS (
    INSERT INTO analytics_tallyday (workspace_id, day, key, count)
    SELECT workspace_id, (hour AT TIME ZONE 'UTC')::date, key, sum(change) FROM taken GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    ON CONFLICT (workspace_id, day, key) DO UPDATE SET count = analytics_tallyday.count + EXCLUDED.count
)
SELECT count(*) FROM taken
"""
# A key behind GONE counts what retention took of the key that follows, and is taken off it here.
TOTAL = """
SELECT coalesce(sum(CASE WHEN key = ANY(%(keys)s) THEN n ELSE -n END), 0)::bigint FROM (
    SELECT key, count AS n FROM analytics_tallyday WHERE workspace_id = %(workspace)s AND key = ANY(%(both)s)
    UNION ALL
    SELECT key, change FROM analytics_tallydelta WHERE workspace_id = %(workspace)s AND key = ANY(%(both)s)
) counted
"""
# What is counted in the hour EVER, for statements of other rooms that have to read more in the same moment.
SINCE_EVER = """
    SELECT key, sum(n)::bigint AS n FROM (
        SELECT key, count AS n FROM analytics_tally WHERE workspace_id = %(workspace)s AND hour = %(ever)s
        UNION ALL
        SELECT key, change FROM analytics_tallydelta WHERE workspace_id = %(workspace)s AND hour = %(ever)s
    ) both_kinds GROUP BY key
"""
# Rows (key, n) and (day, key, n) for the statements of analytics, which sum them: what Python adds up costs several
# times as much.
BETWEEN = """
    SELECT key, count AS n FROM analytics_tallyday
     WHERE workspace_id = %(workspace)s AND day >= %(first_day)s AND day < %(last_day)s
    UNION ALL
    SELECT key, count FROM analytics_tally
     WHERE workspace_id = %(workspace)s AND hour >= %(start)s AND hour < %(morning)s
    UNION ALL
    SELECT key, count FROM analytics_tally
     WHERE workspace_id = %(workspace)s AND hour >= %(evening)s AND hour < %(end)s
    UNION ALL
    SELECT key, change FROM analytics_tallydelta
     WHERE workspace_id = %(workspace)s AND hour >= %(start)s AND hour < %(end)s
"""
DAILY = """
    SELECT day, key, count AS n FROM analytics_tallyday
     WHERE workspace_id = %(workspace)s AND day > (now() AT TIME ZONE 'UTC')::date - %(days)s
    UNION ALL
    SELECT (hour AT TIME ZONE 'UTC')::date, key, change FROM analytics_tallydelta
     WHERE workspace_id = %(workspace)s
       AND hour >= ((now() AT TIME ZONE 'UTC')::date - %(days)s + 1)::timestamp AT TIME ZONE 'UTC'
"""
FOLD_AT_ONCE = 50_000

# The hour of what is counted since a workspace began.
ALL_TIME = datetime(1970, 1, 1, tzinfo=UTC)
# A midnight behind all that is counted.
FOREVER = datetime(9999, 12, 31, tzinfo=UTC)
# Stands where a workspace does for what is counted of the service as a whole.
SERVICE = from_uuid(UUID(int=0), prefix="ws_")
DELETED = "gone."
HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class CounterKey:
    """Where a change is counted: created_at is the email's, its UTC hour counts."""

    workspace_id: str
    created_at: datetime
    key: str


def add(changes: Iterable[tuple[CounterKey, int]]) -> None:
    """Write changes down, one row per hour and key; to be called in the transaction of what they count."""
    summed: Counter[tuple[str, datetime, str]] = Counter()
    for slot, change in changes:
        summed[slot.workspace_id, hour_of(slot.created_at), slot.key] += change
    rows = sorted((*place, change) for place, change in summed.items() if change)
    if not rows:
        return
    workspaces, hours, keys, counts = zip(*rows, strict=True)
    columns = [[to_uuid(workspace, prefix="ws_") for workspace in workspaces], *map(list, (hours, keys, counts))]
    run_planned(ADD, columns)


def add_new_values(*, key: str, change: int, since_ever: Iterable[tuple[CounterKey, int]]) -> dict[str, Any]:
    """Return the values of ADD_NEW but the workspace; since_ever: what is counted since ever, whatever the hour."""
    ever = [{"key": slot.key, "change": by, "is_ever": True} for slot, by in since_ever]
    return {"changes": json.dumps([{"key": key, "change": change, "is_ever": False}, *ever])}


def fold() -> int:
    """Fold waiting deltas into the tallies; return how many. Any number of folds may run at once."""
    with connection.cursor() as cursor:
        failpoint("analytics.before_fold")
        cursor.execute(FOLD, [FOLD_AT_ONCE])
        (count,) = cursor.fetchone()
    failpoint("analytics.after_fold")
    return int(count)


def total(workspace_id: str, *, keys: Collection[str]) -> int:
    """Sum counters over all time, without what retention took away."""
    both = [*keys, *(DELETED + key for key in keys)]
    ((count,),) = read(TOTAL, workspace_id, keys=list(keys), both=both)
    return int(count)


def since_ever(workspace_id: str) -> dict[str, int]:
    """Return what is counted in the hour EVER."""
    return dict(read(SINCE_EVER, workspace_id, ever=ALL_TIME))


def values_between(start: datetime, end: datetime) -> dict[str, Any]:
    """Return the values of BETWEEN for start ≤ hour < end; both are whole hours until FOREVER."""
    first, last = _midnight_from(start), _midnight_until(end)
    if first >= last:
        # No whole day in between: the hours alone.
        first = last = end
    days = {"first_day": first.date(), "last_day": last.date(), "morning": first, "evening": last}
    return {"start": start, "end": end, **days}


def read(sql: str, workspace_id: str, **values: Any) -> list[tuple[Any, ...]]:
    """Run a statement about the counters of one workspace, which it knows as %(workspace)s."""
    with connection.cursor() as cursor:
        cursor.execute(sql, {"workspace": to_uuid(workspace_id, prefix="ws_"), **values})
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def unfolded() -> int:
    """Return how many deltas wait to be folded."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM analytics_tallydelta")
        (count,) = cursor.fetchone()
    return int(count)


def hour_of(moment: datetime) -> datetime:
    """Return the UTC hour that a moment lies in."""
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def _midnight_from(hour: datetime) -> datetime:
    return _midnight_until(hour + timedelta(hours=23))


def _midnight_until(hour: datetime) -> datetime:
    return datetime.combine(hour.date(), time.min, UTC)
