"""Reconciliation of the counters: compare days with the sums of their hours, and repair them."""

from django.db import connection, transaction

from core.counters.counters import DELETED
from core.lib.ids import to_uuid

# Current counts of a workspace: folded and unfolded, minus rows deleted by retention.
CURRENT_COUNTS = f"""
    SELECT hour, regexp_replace(key, '^{DELETED}', '') AS key,
           sum(CASE WHEN starts_with(key, '{DELETED}') THEN -n ELSE n END)::bigint AS n
      FROM (SELECT hour, key, count AS n FROM analytics_tally WHERE workspace_id = %(workspace)s
            UNION ALL
            SELECT hour, key, change FROM analytics_tallydelta WHERE workspace_id = %(workspace)s) both_kinds
     GROUP BY 1, 2
"""  # noqa: S608 - constants
WRONG_DAYS = """
WITH hours AS (
    SELECT (hour AT TIME ZONE 'UTC')::date AS day, key, sum(count)::bigint AS n FROM analytics_tally
     WHERE workspace_id = %(workspace)s GROUP BY 1, 2
), days AS (
    SELECT day, key, count AS n FROM analytics_tallyday WHERE workspace_id = %(workspace)s
)
SELECT day, key, coalesce(days.n, 0), coalesce(hours.n, 0) FROM days FULL JOIN hours USING (day, key)
 WHERE coalesce(days.n, 0) <> coalesce(hours.n, 0) ORDER BY day, key
"""
# The lock blocks folds: a delta folded in between would be counted twice in its day.
LOCK = "LOCK TABLE analytics_tallyday IN SHARE ROW EXCLUSIVE MODE"
SET_DAY = """
INSERT INTO analytics_tallyday (workspace_id, day, key, count) VALUES (%s, %s, %s, %s)
ON CONFLICT (workspace_id, day, key) DO UPDATE SET count = EXCLUDED.count
"""

# Day, key, count of the day, sum of its hours.
WrongDay = tuple[str, str, int, int]


def find_wrong_days(workspace_id: str) -> list[WrongDay]:
    """Return the days whose count differs from the sum of their hours."""
    with connection.cursor() as cursor:
        cursor.execute(WRONG_DAYS, {"workspace": to_uuid(workspace_id, prefix="ws_")})
        return [(day.isoformat(), *rest) for day, *rest in cursor.fetchall()]


@transaction.atomic
def repair_days(workspace_id: str) -> None:
    """Set the count of each wrong day to the sum of its hours."""
    with connection.cursor() as cursor:
        cursor.execute(LOCK)
        workspace = to_uuid(workspace_id, prefix="ws_")
        rows = [(workspace, day, key, total) for day, key, _, total in find_wrong_days(workspace_id)]
        cursor.executemany(SET_DAY, rows)
