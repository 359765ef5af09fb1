"""The report queue: rows are claimed before processing, so that one which crashes the process is tried only 3 times."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TypeVar

from django.db import connection
from django.db.models.functions import Now

from inbound.models import InboundReport

T = TypeVar("T", bound=InboundReport)

MAX_ATTEMPTS = 3
CLAIM_BATCH_SIZE = 100
# Longer than processing CLAIM_BATCH_SIZE rows takes; afterwards another process may claim them.
CLAIM_SECONDS = 120
RETENTION_DAYS = 30
PURGE_BATCH_SIZE = 1_000

# {table} is the table name of a model, never user input.
CLAIM = """
UPDATE {table} SET attempts = attempts + 1, due_at = statement_timestamp() + make_interval(secs => %s)
 WHERE number IN (SELECT number FROM {table}
                   WHERE processed_at IS NULL AND due_at <= statement_timestamp() AND (attempts > 0) = %s
                   ORDER BY due_at LIMIT %s FOR UPDATE SKIP LOCKED)
RETURNING number
"""
POSTPONE = "UPDATE {table} SET attempts = 0, due_at = now() + make_interval(secs => %s) WHERE number = ANY(%s)"
PURGE = """
DELETE FROM {table} WHERE number IN (SELECT number FROM {table} WHERE processed_at < now() - make_interval(days => %s)
                                      ORDER BY processed_at LIMIT %s FOR UPDATE SKIP LOCKED)
"""
# A report quotes the address in the spelling of the remote host, so the comparison ignores case.
ERASE = """
DELETE FROM inbound_mailreport
 WHERE processed_at IS NOT NULL AND (lower(sender) = lower(%(address)s)
    OR position(lower(%(address)s) in lower(encode(source, 'escape'))) > 0);
DELETE FROM inbound_providerreport
 WHERE processed_at IS NOT NULL AND position(lower(%(address)s) in lower(event::text)) > 0
"""


def claim(kind: type[T]) -> list[T]:
    """Claim due rows, in order of arrival.

    A row claimed before and not settled is claimed alone: if it crashes the process, no other row is affected.
    """
    return _claim(kind, is_retry=False, limit=CLAIM_BATCH_SIZE) or _claim(kind, is_retry=True, limit=1)


def _claim(kind: type[T], *, is_retry: bool, limit: int) -> list[T]:
    with connection.cursor() as cursor:
        cursor.execute(CLAIM.format(table=kind.table()), [CLAIM_SECONDS, is_retry, limit])
        numbers = [number for (number,) in cursor.fetchall()]
    return list(kind.objects.filter(number__in=numbers).order_by("number"))


def waiting_time(row: InboundReport) -> timedelta:
    """Return the age of a claimed row, by the database clock, since the local clock may be wrong."""
    return row.due_at - timedelta(seconds=CLAIM_SECONDS) - row.received_at


def settle(kind: type[T], statuses: Mapping[int, InboundReport.ReportStatus]) -> None:
    """Record the final status of rows, by number, and take them off the queue."""
    for status in set(statuses.values()):
        numbers = [number for number, one in statuses.items() if one is status]
        kind.objects.filter(number__in=numbers).update(verdict=status, processed_at=Now())


def postpone(kind: type[T], numbers: Sequence[int], *, seconds: float) -> None:
    """Make rows due again after `seconds` and reset their attempts."""
    with connection.cursor() as cursor:
        cursor.execute(POSTPONE.format(table=kind.table()), [seconds, list(numbers)])


def purge(kind: type[T]) -> int:
    """Delete a batch of rows settled more than RETENTION_DAYS ago; return the number deleted."""
    with connection.cursor() as cursor:
        cursor.execute(PURGE.format(table=kind.table()), [RETENTION_DAYS, PURGE_BATCH_SIZE])
        return int(cursor.rowcount)


def erase_reports(address: str) -> None:
    """Delete the processed reports about an address. Unprocessed ones are due within a minute."""
    with connection.cursor() as cursor:
        for statement in ERASE.split(";"):
            cursor.execute(statement, {"address": address})
