"""The queue of things told: claimed before they are read, so that what breaks a reader is tried three times only."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TypeVar

from django.db import connection
from django.db.models.functions import Now

from inbound.models import Told

T = TypeVar("T", bound=Told)

ATTEMPTS = 3
AT_ONCE = 100
# Longer than reading and recording AT_ONCE rows takes; then another process may try.
CLAIM_SECONDS = 120
KEEP_DAYS = 30
PURGE_AT_ONCE = 1_000

# Statements with the table's name in them; it is a model's, never anybody's input.
CLAIM = """
UPDATE {table} SET attempts = attempts + 1, due_at = statement_timestamp() + make_interval(secs => %s)
 WHERE number IN (SELECT number FROM {table}
                   WHERE processed_at IS NULL AND due_at <= statement_timestamp() AND (attempts > 0) = %s
                   ORDER BY due_at LIMIT %s FOR UPDATE SKIP LOCKED)
RETURNING number
"""
PUT_OFF = "UPDATE {table} SET attempts = 0, due_at = now() + make_interval(secs => %s) WHERE number = ANY(%s)"
PURGE = """
DELETE FROM {table} WHERE number IN (SELECT number FROM {table} WHERE processed_at < now() - make_interval(days => %s)
                                      ORDER BY processed_at LIMIT %s FOR UPDATE SKIP LOCKED)
"""
# A report quotes the address as the host spells it, so any spelling counts.
ERASE = """
DELETE FROM inbound_mailreport
 WHERE processed_at IS NOT NULL AND (lower(sender) = lower(%(address)s)
    OR position(lower(%(address)s) in lower(encode(source, 'escape'))) > 0);
DELETE FROM inbound_providerreport
 WHERE processed_at IS NOT NULL AND position(lower(%(address)s) in lower(event::text)) > 0
"""


def claim(kind: type[T]) -> list[T]:
    """Take rows that are due, in the order in which they came.

    One that was claimed before and not settled comes alone: if it is what ends processes, it takes no others along.
    """
    return _claim(kind, again=False, limit=AT_ONCE) or _claim(kind, again=True, limit=1)


def _claim(kind: type[T], *, again: bool, limit: int) -> list[T]:
    with connection.cursor() as cursor:
        cursor.execute(CLAIM.format(table=kind.table()), [CLAIM_SECONDS, again, limit])
        numbers = [number for (number,) in cursor.fetchall()]
    return list(kind.objects.filter(number__in=numbers).order_by("number"))


def waited(row: Told) -> timedelta:
    """Return how long ago a claimed row came, by the database's clock: this machine's may be wrong."""
    return row.due_at - timedelta(seconds=CLAIM_SECONDS) - row.received_at


def settle(kind: type[T], verdicts: Mapping[int, Told.ReportStatus]) -> None:
    """Write down what became of rows, by their number: they are due no more."""
    for verdict in set(verdicts.values()):
        numbers = [number for number, one in verdicts.items() if one is verdict]
        kind.objects.filter(number__in=numbers).update(verdict=verdict, processed_at=Now())


def put_off(kind: type[T], numbers: Sequence[int], *, seconds: float) -> None:
    """Make rows due again later; their attempts begin anew."""
    with connection.cursor() as cursor:
        cursor.execute(PUT_OFF.format(table=kind.table()), [seconds, list(numbers)])


def purge(kind: type[T]) -> int:
    """Delete a batch of rows that were settled KEEP_DAYS ago; return how many."""
    with connection.cursor() as cursor:
        cursor.execute(PURGE.format(table=kind.table()), [KEEP_DAYS, PURGE_AT_ONCE])
        return int(cursor.rowcount)


def erase(address: str) -> None:
    """Delete what was told about an address and has been read; what has not is due within a minute."""
    with connection.cursor() as cursor:
        for statement in ERASE.split(";"):
            cursor.execute(statement, {"address": address})
