"""Outages of the database during a test, whose own connection is not in a transaction."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection

from core.lib.sql import run

BLOCKED = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


def blocked_connections() -> int:
    """Return the number of connections to the database of the test that wait for a lock."""
    with connection.cursor() as cursor:
        # Within a transaction, the view keeps its first snapshot.
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(BLOCKED)
        return int(cursor.fetchone()[0])


def open_connection() -> "psycopg.Connection[Any]":
    """Open another connection to the database of the test, in a transaction."""
    return psycopg.connect(**{**connection.get_connection_params(), "cursor_factory": psycopg.Cursor})


def end_connection(backend_pid: int) -> None:
    """Terminate a connection, as a restart of the server does."""
    with open_connection() as other:
        other.execute("SELECT pg_terminate_backend(%s, 30000)", [backend_pid])


def lose_connection(_: str = "") -> None:
    """Terminate the connection of this thread; in place of a failpoint, it gets its name."""
    ((backend_pid,),) = run("SELECT pg_backend_pid()")
    end_connection(backend_pid)


@contextmanager
def expect_outage() -> Iterator[None]:
    """Expect that a block loses its connection to the database, and open another one, as processors do."""
    with pytest.raises(OperationalError):
        yield
    connection.close()


@contextmanager
def full_disk(table: str) -> Iterator[None]:
    """Fail each insertion into a table as PostgreSQL does without space on its disk."""
    run("CREATE FUNCTION fill_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "RAISE EXCEPTION 'No space left on device' USING ERRCODE = 'disk_full'; END $$")  # fmt: skip
    run(f"CREATE TRIGGER fill_disk BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION fill_disk()")
    yield
    run(f"DROP TRIGGER fill_disk ON {table}")
    run("DROP FUNCTION fill_disk()")
