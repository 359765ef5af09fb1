"""Emptying of the tables after a test that commits."""

from typing import Any

from django.db import connection, transaction
from django.test import TransactionTestCase

# The largest table that is emptied row by row; deleted rows count too, so that no table grows from test to test.
MAX_BYTES = 2**20
# The migrate command fills them, and no test changes them.
KEPT = ("django_content_type", "auth_permission")

flush = TransactionTestCase._fixture_teardown


def empty_tables(test_case: Any) -> None:
    """Delete all rows of all models; their sequences continue, as after Django's flush.

    Flush makes new files for each of 70 tables and their indexes, and inserts all permissions again, which takes 240 ms
    of CPU time, against 5 to 10 ms for the few rows of most tests. A table with more than MAX_BYTES is left to it.
    """
    names = connection.introspection.django_table_names()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT quote_ident(relname), pg_relation_size(oid) FROM pg_class"
            " WHERE relnamespace = current_schema::regnamespace AND relname = ANY(%s) AND relname <> ALL(%s)",
            [names, list(KEPT)],
        )
        tables = dict(cursor.fetchall())
        if all(size <= MAX_BYTES for size in tables.values()):
            # The lock waits for transactions of other connections, as TRUNCATE does.
            lock = f"LOCK TABLE {', '.join(tables)} IN ACCESS EXCLUSIVE MODE"
            cursor.execute("; ".join([lock, *(f"DELETE FROM {table}" for table in tables)]))
            return
    flush(test_case)
