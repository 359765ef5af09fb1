"""SQL statements with fewer round trips and fewer plans: several statements in one query, or one plan for many calls.

A round trip costs about 0.2 ms in both processes, and often no result of the first statements is needed before the
last one is sent. Planning a statement costs PostgreSQL as much as executing it for a few rows, or more.
"""

import functools
import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import psycopg
from django.db import (
    DEFAULT_DB_ALIAS,
    InterfaceError,
    OperationalError,
    connection,
    connections,
    transaction,
)

PLAN_SECONDS = 20
# A placeholder of psycopg with or without a name, or an escaped percent sign.
PLACEHOLDER = re.compile(r"%(?:\((\w+)\)s|(s)|%)")
# A serialization failure, a deadlock, and a lock that was not free within lock_timeout (PostgreSQL, appendix A).
CONFLICTS = frozenset({"40001", "40P01", "55P03"})


@dataclass(frozen=True)
class Fragment:
    """SQL with its named parameters: a statement, or a part of one."""

    sql: str
    params: Mapping[str, Any] = field(default_factory=dict)


def compose(template: str, params: Mapping[str, Any], **parts: Fragment) -> Fragment:
    """Return a statement: the template with each part in place of `{name}`, and the parameters of all.

    Raises ValueError if two of them give one name different values.
    """
    merged = dict(params)
    for part in parts.values():
        for name, value in part.params.items():
            if merged.setdefault(name, value) != value:
                raise ValueError(f"The parameter {name} has two values.")
    return Fragment(template.format(**{name: part.sql for name, part in parts.items()}), merged)


def run(sql: str, values: Mapping[str, Any] | Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """Run a statement and return its rows, if any."""
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return _rows(cursor)


def delete_batches(sql: str, values: Mapping[str, Any] | Sequence[Any] = (), *, size: int) -> Iterator[None]:
    """Run a statement that deletes at most `size` rows until it deletes fewer; yield after each run."""
    deleted = size
    while deleted == size:
        with connection.cursor() as cursor:
            cursor.execute(sql, values)
            deleted = cursor.rowcount
        yield


def is_conflict(error: BaseException) -> bool:
    """Return whether a transaction was rolled back because of another one, so that it may succeed when repeated."""
    return getattr(error.__cause__, "sqlstate", None) in CONFLICTS


def is_outage(error: BaseException) -> bool:
    """Return whether an error says that the database does not respond, or not for now."""
    return isinstance(error, (OperationalError, InterfaceError)) and not is_conflict(error)


def database_time() -> datetime:
    """Return the time of the database, of this statement."""
    time_: datetime = run("SELECT statement_timestamp()")[0][0]
    return time_


def run_together(statements: Sequence[Fragment]) -> list[list[tuple[Any, ...]]]:
    """Run statements in order, in the caller's transaction; return the rows of each.

    The parameters are bound by the client: PostgreSQL takes several statements only without parameters.
    """
    with connection.cursor() as cursor:
        cursor.execute(";\n".join(cursor.mogrify(statement.sql, statement.params) for statement in statements))
        results = [_rows(cursor)]
        while cursor.nextset():
            results.append(_rows(cursor))
    return results


@contextmanager
def local_settings(settings: Mapping[str, str]) -> Iterator[None]:
    """Change settings of PostgreSQL for the statements of a block, which is a transaction."""
    with transaction.atomic():
        run("SELECT set_config(name, value, true) FROM json_each_text(%s) AS s (name, value)", [json.dumps(settings)])
        yield
        if connection.savepoint_ids:
            # They would last until the end of the outer transaction.
            run("; ".join(f"SET LOCAL {name} TO DEFAULT" for name in settings))


def run_replanned(sql: str, values: Mapping[str, Any] | Sequence[Any]) -> list[tuple[Any, ...]]:
    """Run a statement that each connection plans anew every 20 seconds, and return its rows.

    For frequent statements of workers on a queue that may be empty now and hold a million rows in an hour: the plan
    follows the table sizes. See docs/decisions/0066.
    """
    return run_prepared(f"{sql}\n-- {int(time.monotonic() // PLAN_SECONDS)}", values)


def run_prepared(sql: str, values: Mapping[str, Any] | Sequence[Any]) -> list[tuple[Any, ...]]:
    """Run a statement that each connection plans once, and return its rows, if any.

    For statements that are more expensive to plan than to execute. Unsuitable for a table that may be empty at first
    and large later: the plan stays until the table is analyzed again.
    """
    return _run_bound(sql, values, prepare=True)


def run_binary(sql: str, values: Mapping[str, Any] | Sequence[Any]) -> list[tuple[Any, ...]]:
    """Run a statement and return its rows, which the server sends in binary form.

    For large bytea values: in text form they take twice the memory, also in the buffer that libpq keeps.
    """
    return _run_bound(sql, values, binary=True)


@contextmanager
def copy_rows(sql: str) -> Iterator[psycopg.Copy]:
    """Yield what writes the rows of a COPY statement. Raises Django's errors, as other statements do.

    Django's cursors leave those of psycopg's `copy` as they are: code that repeats its work after an outage would not
    know them, and the connection would be used again.
    """
    with connection.wrap_database_errors, connection.cursor() as cursor, cursor.copy(sql) as copy:
        yield copy


def _run_bound(sql: str, values: Mapping[str, Any] | Sequence[Any], **options: bool) -> list[tuple[Any, ...]]:
    """Run a statement whose parameters the server binds, and return its rows, if any."""
    # Looked up once: django.db.connection repeats the lookup for each attribute.
    database = connections[DEFAULT_DB_ALIAS]
    # The same steps as in Django's cursor().
    database.close_if_health_check_failed()
    database.ensure_connection()
    database.validate_no_broken_transaction()
    text, names = _numbered(sql)
    ordered = [values[name] for name in names] if isinstance(values, Mapping) else values
    with database.wrap_database_errors:
        # Django's own cursors bind parameters into the text, which leaves nothing to prepare.
        rows = _rows(psycopg.RawCursor(database.connection).execute(text, ordered, **options))
    if database.queries_logged:
        database.queries_log.append({"sql": sql, "time": ""})
    return rows


@functools.lru_cache(maxsize=128)
def _numbered(sql: str) -> tuple[str, tuple[str, ...]]:
    """Return a statement with the placeholders of PostgreSQL, and the names of its values in their order.

    psycopg's own translation is kept only for statements of up to 4,096 characters. It took a tenth of the time to
    accept an email.
    """
    numbers: dict[str, int] = {}

    def numbered(match: re.Match[str]) -> str:
        if match[0] == "%%":
            return "%"
        return f"${numbers.setdefault(match[1] or str(len(numbers)), len(numbers) + 1)}"

    return PLACEHOLDER.sub(numbered, sql), tuple(numbers)


def _rows(cursor: Any) -> list[tuple[Any, ...]]:
    # Not `description`, which builds an object per column.
    return cursor.fetchall() if cursor.pgresult.nfields else []
