"""Plans of queries as with large tables: few rows are scanned and sorted whatever the indexes are."""

from typing import Any

from django.db import connection


def prefer_indexes(*others: str) -> None:
    """Let the planner scan and sort only what no index has, for the rest of the transaction.

    others: options of the planner that are off, too.
    """
    with connection.cursor() as cursor:
        cursor.execute("; ".join(f"SET LOCAL {name} = off" for name in ("enable_seqscan", "enable_sort", *others)))


def plan_of(sql: str, values: Any = None) -> str:
    """Return the plan of a statement that is not run."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {sql}", values)
        return "\n".join(line for (line,) in cursor.fetchall())
