"""Reconciliation of counters: count a workspace's emails and recipients again and compare (docs/decisions/0042).

Emails deleted by retention are counted twice: when accepted and as deleted. Reconcile computes the difference, and the
result is exact at any time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection, transaction

from core.counters import counters
from core.counters.counters import COUNTED_EVENTS
from core.counters.reconcile import CURRENT_COUNTS
from core.counters.slices import slices_sql
from core.lib.ids import to_uuid
from core.lib.worker.stages import Stage
from emails.states import FINISHED_COUNTERS

# The counter keys of an email: emails.status_rollup in SQL, for many rows at once.
REACHED_KEYS = ", ".join(f"('reached.{name}', {name}_at IS NOT NULL)" for name in COUNTED_EVENTS)
COUNTER_KEYS = f"""
LATERAL (SELECT CASE WHEN is_test THEN '{counters.TEST}' WHEN is_diverted THEN '{counters.DIVERTED}' ELSE '' END
                || name AS key, applies
           FROM (VALUES ('status.' || status, true), {REACHED_KEYS}) AS counted (name, applies)) AS counted_as
"""  # noqa: S608 - constants
FINISHED_KEYS = " ".join(f"WHEN '{status}' THEN '{counter}'" for status, counter in FINISHED_COUNTERS.items())
RECOUNTED = f"""
    SELECT date_trunc('hour', created_at, 'UTC') AS hour, key, count(*) AS n
      FROM emails_email CROSS JOIN {COUNTER_KEYS}
     WHERE workspace_id = %(workspace)s AND applies GROUP BY 1, 2
    UNION ALL
    SELECT %(ever)s, key, count(*)
      FROM emails_email e JOIN emails_recipient r ON r.email_id = e.id
           LEFT JOIN emails_pending p ON p.recipient_id = r.id
           CROSS JOIN LATERAL (VALUES
           ('recipients.accepted', true),
           (CASE r.state {FINISHED_KEYS} END, p.recipient_id IS NULL),
           ('recipients.delayed', p.stage IN ({Stage.WAITING}, {Stage.SCHEDULED}, {Stage.HELD}, {Stage.PACED},
                                     {Stage.UNAPPROVED}))
           ) AS counted_as (key, applies)
     WHERE e.workspace_id = %(workspace)s AND applies GROUP BY 1, 2
"""  # noqa: S608 - a constant
# One statement, so that both sides are read from one snapshot while sending continues.
COMPARE = f"""
SELECT hour, key, coalesce(counted.n, 0), coalesce(found.n, 0)
  FROM ({CURRENT_COUNTS}) counted FULL JOIN ({RECOUNTED}) found USING (hour, key)
 WHERE coalesce(counted.n, 0) <> coalesce(found.n, 0) AND key ~ '^((test|diverted)\\.)?(status|reached|recipients)\\.'
 ORDER BY hour, key
"""  # noqa: S608 - constants
LOCK = "SELECT pg_advisory_xact_lock(hashtext('reconcile'))"
# Only slices that still have emails: their ids are hashes, so others cannot be listed.
SLICE_DIFFERENCES = f"""
WITH found AS (
    SELECT slice, (created_at AT TIME ZONE 'UTC')::date AS day, key, count(*) AS n
      FROM emails_email e CROSS JOIN {COUNTER_KEYS} CROSS JOIN unnest({slices_sql("e")}) AS slice
     WHERE workspace_id = %(workspace)s AND applies AND NOT is_test AND NOT is_diverted GROUP BY 1, 2, 3
), current AS (
    SELECT slice, day, key, count AS n FROM analytics_slice WHERE slice IN (SELECT slice FROM found)
    UNION ALL
    SELECT slice, (hour AT TIME ZONE 'UTC')::date, key, change
      FROM analytics_tallydelta CROSS JOIN unnest(slices) AS slice
     WHERE workspace_id = %(workspace)s AND slice IN (SELECT slice FROM found)
), counted AS (
    SELECT slice, day, regexp_replace(key, '^{counters.DELETED}', '') AS key,
           sum(CASE WHEN starts_with(key, '{counters.DELETED}') THEN -n ELSE n END)::bigint AS n
      FROM current GROUP BY 1, 2, 3
)
SELECT slice, day, key, coalesce(found.n, 0) - coalesce(counted.n, 0) AS difference
  FROM counted FULL JOIN found USING (slice, day, key)
 WHERE coalesce(counted.n, 0) <> coalesce(found.n, 0) AND key ~ '^(status|reached)\\.'
"""  # noqa: S608 - constants
COUNT_SLICE_DIFFERENCES = f"SELECT count(*) FROM ({SLICE_DIFFERENCES}) differences"  # noqa: S608
# The lock blocks folds, and the statement after it sees their results.
LOCK_SLICES = "LOCK TABLE analytics_slice IN SHARE ROW EXCLUSIVE MODE"
REPAIR_SLICES = f"""
INSERT INTO analytics_slice (slice, day, key, count) SELECT * FROM ({SLICE_DIFFERENCES}) differences
ON CONFLICT (slice, day, key) DO UPDATE SET count = analytics_slice.count + EXCLUDED.count
"""  # noqa: S608


@dataclass(frozen=True)
class CounterDifference:
    """A counter that differs from the recomputed value."""

    hour: datetime
    key: str
    counted: int
    found: int


def find_differences(workspace_id: str) -> list[CounterDifference]:
    """Compare all counters of a workspace with its rows; no statement timeout applies."""
    values: dict[str, Any] = {"workspace": to_uuid(workspace_id, prefix="ws_"), "ever": counters.ALL_TIME}
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 0")
        cursor.execute(COMPARE, values)
        return [CounterDifference(*row) for row in cursor.fetchall()]


@transaction.atomic
def repair_counters(workspace_id: str) -> Sequence[CounterDifference]:
    """Correct the counters of a workspace; return the differences.

    A difference stays constant during sending, because rows and counters change in the same transaction.
    """
    with connection.cursor() as cursor:
        cursor.execute(LOCK)
    differences = find_differences(workspace_id)
    counters.add(
        (counters.CounterKey(workspace_id, diff.hour, diff.key), diff.found - diff.counted) for diff in differences
    )
    return differences


def count_slice_differences(workspace_id: str) -> int:
    """Return the number of wrong counts by tag, template, domain and stream; no statement timeout applies."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 0")
        cursor.execute(COUNT_SLICE_DIFFERENCES, {"workspace": to_uuid(workspace_id, prefix="ws_")})
        (count,) = cursor.fetchone()
        return int(count)


@transaction.atomic
def repair_slices(workspace_id: str) -> None:
    """Correct the counts by tag, template, domain and stream; the emails of an older version have none."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 0")
        cursor.execute(LOCK_SLICES)
        cursor.execute(REPAIR_SLICES, {"workspace": to_uuid(workspace_id, prefix="ws_")})
