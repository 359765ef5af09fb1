"""Few round trips to the database: several statements in one, or one that is planned once.

Each round trip costs about 0.2 ms of both processes, and often nobody has a use for the answers of the first
statements before the last is sent. To plan a statement costs PostgreSQL as much as a few rows of it, or more.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from django.db import DEFAULT_DB_ALIAS, connection, connections

PLAN_SECONDS = 20


@dataclass(frozen=True)
class Statement:
    """SQL with its values, as cursor.execute takes them."""

    sql: str
    values: Mapping[str, Any] | Sequence[Any] = ()


def run_together(statements: Sequence[Statement]) -> list[list[tuple[Any, ...]]]:
    """Run statements in their order, in the transaction of the caller; return the rows of each.

    The values are bound on our side, since PostgreSQL takes several statements only without parameters.
    """
    with connection.cursor() as cursor:
        cursor.execute(";\n".join(cursor.mogrify(one.sql, one.values) for one in statements))
        found = [_rows(cursor)]
        while cursor.nextset():
            found.append(_rows(cursor))
    return found


def run_planned(sql: str, values: Mapping[str, Any] | Sequence[Any]) -> list[tuple[Any, ...]]:
    """Run a statement that each connection plans every 20 seconds, and return its rows: by the tables as they are then.

    For what workers ask again and again, of a queue that may be empty now and have a million rows in an hour.
    See docs/decisions/0066.
    """
    return run_prepared(f"{sql}\n-- {int(time.monotonic() // PLAN_SECONDS)}", values)


def run_prepared(sql: str, values: Mapping[str, Any] | Sequence[Any]) -> list[tuple[Any, ...]]:
    """Run a statement that each connection plans once, and return its rows, if it returns some.

    For what costs more to plan than to do. Not for what may meet an empty table first and a large one later:
    until the table is analyzed anew the plan stays.
    """
    # Looked up once: django.db.connection does it for each of its attributes.
    own = connections[DEFAULT_DB_ALIAS]
    # What Django does before it makes a cursor.
    own.close_if_health_check_failed()
    own.ensure_connection()
    own.validate_no_broken_transaction()
    with own.wrap_database_errors:
        # Django's own cursors bind values into the text, of which nothing can be prepared.
        rows = _rows(psycopg.Cursor(own.connection).execute(sql, values, prepare=True))
    if own.queries_logged:
        own.queries_log.append({"sql": sql, "time": ""})
    return rows


def _rows(cursor: Any) -> list[tuple[Any, ...]]:
    # Not `description`, which describes each column anew.
    return cursor.fetchall() if cursor.pgresult.nfields else []
