"""Counters: add deltas, fold them, read the sums.

No row is hot: a status change inserts deltas in its own transaction, and beat folds them into one row per hour,
one per day, and one per day and slice. Readers sum folded rows and unfolded deltas in one statement, so every figure
is exact at any time. They read whole days where possible, so a range of years costs as little as weeks. See
docs/decisions/0042 and 0128.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection

from core.lib.ids import from_uuid, to_uuid
from core.lib.sql import Fragment, run_replanned
from core.lib.worker.failpoints import failpoint

# An array of arrays would lose its shape, so the slices of a row are the text of an array.
ADD = """
INSERT INTO analytics_tallydelta (workspace_id, hour, key, change, slices)
SELECT workspace_id, hour, key, change, slices::uuid[]
  FROM unnest(%s::uuid[], %s::timestamptz[], %s::text[], %s::bigint[], %s::text[])
       AS d (workspace_id, hour, key, change, slices)
"""
# The hour is that of now(), or 'epoch' for all time.
INSERT_EMAIL_DELTAS = """
INSERT INTO analytics_tallydelta (workspace_id, hour, key, change, slices)
SELECT %(workspace)s, CASE WHEN is_all_time THEN 'epoch' ELSE date_trunc('hour', now(), 'UTC') END, key, change, slices
  FROM json_to_recordset(%(changes)s) AS d (key text, change bigint, is_all_time boolean, slices uuid[])
"""
# Deltas locked by another fold are skipped. A delta is either a row or in the sums, never both.
FOLD = """
WITH next AS (
    SELECT id FROM analytics_tallydelta ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED
), folded AS (
    DELETE FROM analytics_tallydelta WHERE id IN (SELECT id FROM next)
    RETURNING workspace_id, hour, key, change, slices
), by_hour AS (
    INSERT INTO analytics_tally (workspace_id, hour, key, count)
    SELECT workspace_id, hour, key, sum(change) FROM folded GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    ON CONFLICT (workspace_id, hour, key) DO UPDATE SET count = analytics_tally.count + EXCLUDED.count
), by_day AS (
    INSERT INTO analytics_tallyday (workspace_id, day, key, count)
    SELECT workspace_id, (hour AT TIME ZONE 'UTC')::date, key, sum(change) FROM folded GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    ON CONFLICT (workspace_id, day, key) DO UPDATE SET count = analytics_tallyday.count + EXCLUDED.count
), by_slice AS (
    INSERT INTO analytics_slice (slice, day, key, count)
    SELECT slice, (hour AT TIME ZONE 'UTC')::date, key, sum(change) FROM folded, unnest(slices) AS slice
     GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    ON CONFLICT (slice, day, key) DO UPDATE SET count = analytics_slice.count + EXCLUDED.count
)
SELECT count(*) FROM folded
"""
# A key prefixed with DELETED counts rows that retention deleted; it is subtracted here.
TOTAL = """
SELECT coalesce(sum(CASE WHEN key = ANY(%(keys)s) THEN n ELSE -n END), 0)::bigint FROM (
    SELECT key, count AS n FROM analytics_tallyday WHERE workspace_id = %(workspace)s AND key = ANY(%(both)s)
    UNION ALL
    SELECT key, change FROM analytics_tallydelta WHERE workspace_id = %(workspace)s AND key = ANY(%(both)s)
) counted
"""
TOTALS = """
SELECT key, sum(n)::bigint FROM (
    SELECT key, count AS n FROM analytics_tallyday WHERE workspace_id = %(workspace)s AND key = ANY(%(both)s)
    UNION ALL
    SELECT key, change FROM analytics_tallydelta WHERE workspace_id = %(workspace)s AND key = ANY(%(both)s)
) counted GROUP BY key
"""
# Counts of the hour ALL_TIME, for statements of other apps that read more in the same snapshot.
ALL_TIME_COUNTS = """
    SELECT key, sum(n)::bigint AS n FROM (
        SELECT key, count AS n FROM analytics_tally WHERE workspace_id = %(workspace)s AND hour = %(all_time)s
        UNION ALL
        SELECT key, change FROM analytics_tallydelta WHERE workspace_id = %(workspace)s AND hour = %(all_time)s
    ) both_kinds GROUP BY key
"""
# Rows (key, n) and (day, key, n) for the statements of analytics, which sum them: summing in Python costs several
# times as much.
RANGE_COUNTS = """
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
# The first of the last days, which end with today.
FIRST_DAY = "((now() AT TIME ZONE 'UTC')::date - %(days)s + 1)"
DAILY_COUNTS = f"""
    SELECT day, key, count AS n FROM analytics_tallyday WHERE workspace_id = %(workspace)s AND day >= {FIRST_DAY}
    UNION ALL
    SELECT (hour AT TIME ZONE 'UTC')::date, key, change FROM analytics_tallydelta
     WHERE workspace_id = %(workspace)s AND hour >= {FIRST_DAY}::timestamp AT TIME ZONE 'UTC'
"""  # noqa: S608 - constants
# A delta has up to twelve slices: the statement must stay far below statement_timeout.
FOLD_BATCH_SIZE = 5_000

# The hour of counters that cover all time.
ALL_TIME = datetime(1970, 1, 1, tzinfo=UTC)
# A midnight after every counted hour.
FOREVER = datetime(9999, 12, 31, tzinfo=UTC)
# The workspace id of counters of the whole service.
SERVICE = from_uuid(UUID(int=0), prefix="ws_")
DELETED = "gone."
# The prefix of the counters of test emails, which analytics do not read.
TEST = "test."
# The same of emails whose messages went elsewhere than to their recipients (docs/decisions/0387).
DIVERTED = "diverted."
HOUR = timedelta(hours=1)
# An email counts once under `reached.` and each of these events.
COUNTED_EVENTS = ("delivered", "bounced", "opened", "clicked")


@dataclass(frozen=True)
class CounterKey:
    """A counter: workspace, key, and the UTC hour of the email's created_at.

    slices: the slices of the email (core.counters.slices), which are counted as well.
    """

    workspace_id: str
    created_at: datetime
    key: str
    slices: tuple[UUID, ...] = ()


# A counter and the number to add to it.
CounterChange = tuple[CounterKey, int]


def counter_key(key: str, *, is_test: bool, is_diverted: bool = False) -> str:
    """Return the key that counts emails: live, test or diverted ones."""
    if is_test:
        return TEST + key
    return DIVERTED + key if is_diverted else key


def add(changes: Iterable[CounterChange]) -> None:
    """Insert deltas, one row per hour, key and slices. Call it in the transaction of the changes that it counts."""
    sums: Counter[tuple[str, datetime, str, tuple[UUID, ...]]] = Counter()
    for counter, change in changes:
        sums[counter.workspace_id, hour_of(counter.created_at), counter.key, counter.slices] += change
    rows = sorted((*group, change) for group, change in sums.items() if change)
    if not rows:
        return
    workspaces, hours, keys, slices, counts = zip(*rows, strict=True)
    ids = [to_uuid(workspace, prefix="ws_") for workspace in workspaces]
    run_replanned(ADD, [ids, list(hours), list(keys), list(counts), [_array_text(ids) for ids in slices]])


def email_deltas(
    workspace_id: str,
    *,
    key: str,
    counts: Mapping[tuple[UUID, ...], int],
    all_time_changes: Iterable[CounterChange],
) -> Fragment:
    """Return SQL that inserts the deltas of emails that the same transaction creates; a WHERE may follow.

    counts: the number of emails by their slices.
    all_time_changes: changes counted in the hour ALL_TIME.
    """
    all_time = [
        {"key": counter.key, "change": by, "is_all_time": True, "slices": []} for counter, by in all_time_changes
    ]
    changes = [
        {"key": key, "change": count, "is_all_time": False, "slices": [str(slice_) for slice_ in slices]}
        for slices, count in counts.items()
    ]
    values = {"workspace": to_uuid(workspace_id, prefix="ws_"), "changes": json.dumps(changes + all_time)}
    return Fragment(INSERT_EMAIL_DELTAS, values)


def fold() -> int:
    """Fold deltas into the counters and return their number. Any number of folds may run concurrently."""
    with connection.cursor() as cursor:
        failpoint("analytics.before_fold")
        cursor.execute(FOLD, [FOLD_BATCH_SIZE])
        (count,) = cursor.fetchone()
    failpoint("analytics.after_fold")
    return int(count)


def total(workspace_id: str, *, keys: Collection[str]) -> int:
    """Sum counters over all time, minus rows deleted by retention."""
    both = [*keys, *(DELETED + key for key in keys)]
    ((count,),) = read(TOTAL, workspace_id, keys=list(keys), both=both)
    return int(count)


def totals(workspace_id: str, *, keys: Collection[str]) -> dict[str, int]:
    """Return the total of each key, as `total` does, in one query."""
    both = [*keys, *(DELETED + key for key in keys)]
    counts = dict(read(TOTALS, workspace_id, both=both))
    return {key: int(counts.get(key, 0) - counts.get(DELETED + key, 0)) for key in keys}


def all_time_counts(workspace_id: str) -> dict[str, int]:
    """Return the counts of the hour ALL_TIME by key."""
    return dict(read(ALL_TIME_COUNTS, workspace_id, all_time=ALL_TIME))


def range_values(start: datetime, end: datetime) -> dict[str, Any]:
    """Return the values of RANGE_COUNTS for start ≤ hour < end; both are whole hours, at most FOREVER."""
    first, last = _midnight_until(start + timedelta(hours=23)), _midnight_until(end)
    if first >= last:
        # No whole day in between: hours only.
        first = last = end
    days = {"first_day": first.date(), "last_day": last.date(), "morning": first, "evening": last}
    return {"start": start, "end": end, **days}


def read(sql: str, workspace_id: str, **values: Any) -> list[tuple[Any, ...]]:
    """Run a statement about the counters of one workspace, passed as %(workspace)s; return the rows."""
    with connection.cursor() as cursor:
        cursor.execute(sql, {"workspace": to_uuid(workspace_id, prefix="ws_"), **values})
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def count_unfolded() -> int:
    """Return the number of deltas not yet folded."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM analytics_tallydelta")
        (count,) = cursor.fetchone()
    return int(count)


def hour_of(time: datetime) -> datetime:
    """Return the start of the UTC hour of a time."""
    return time.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def _array_text(slices: tuple[UUID, ...]) -> str:
    return f"{{{','.join(map(str, slices))}}}"


def _midnight_until(hour: datetime) -> datetime:
    return datetime.combine(hour.date(), datetime.min.time(), UTC)
