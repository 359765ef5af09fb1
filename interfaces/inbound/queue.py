"""The report queue: rows are claimed before processing, so that one which crashes the process is tried only 3 times."""

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from django.db.models.functions import Now

from core.erasing.steps import ErasureScope, StepResult
from core.lib.ids import to_uuid
from core.lib.sql import run
from core.lib.worker.lease_queue import Claim, LeaseQueue
from core.lib.worker.unused_claims import UnusedClaims
from domains.reports.deletion import erase_senders
from interfaces.inbound.models import InboundReport, MailReport, ProviderReport

T = TypeVar("T", bound=InboundReport)

MAX_ATTEMPTS = 3
CLAIM_BATCH_SIZE = 100
# Longer than processing CLAIM_BATCH_SIZE rows takes; afterwards another process may claim them.
CLAIM_SECONDS = 120
RETENTION_DAYS = 30
PURGE_BATCH_SIZE = 1_000

QUEUES: dict[type[InboundReport], LeaseQueue] = {
    kind: LeaseQueue(
        table=kind.table(),
        key="number",
        key_type="bigint",
        fence="attempts",
        condition="processed_at IS NULL",
        lease_seconds=CLAIM_SECONDS,
    )
    for kind in (MailReport, ProviderReport)
}
# Claims during which the database stopped responding.
UNUSED: dict[type[InboundReport], UnusedClaims[Claim]] = {
    kind: UnusedClaims(queue.give_back) for kind, queue in QUEUES.items()
}
EMPTIED: dict[type[InboundReport], dict[str, Any]] = {
    MailReport: {"sender": "", "source": b""},
    ProviderReport: {"event": {}},
}
# {table} is the table name of a model, never user input.
PURGE = """
WITH expired AS (
    SELECT number FROM {table} WHERE processed_at < now() - make_interval(days => %s)
     ORDER BY processed_at LIMIT %s FOR UPDATE SKIP LOCKED
)
DELETE FROM {table} WHERE number IN (SELECT number FROM expired)
RETURNING number
"""
RECIPIENTS = """
    SELECT r.id, r.provider_message_id, lower(r.address) AS address
      FROM emails_recipient r JOIN emails_email e ON e.id = r.email_id
     WHERE lower(r.address) = ANY(%(addresses)s) AND e.workspace_id = %(workspace)s
"""
ERASE_MAIL_REPORTS = f"""
DELETE FROM inbound_mailreport report USING ({RECIPIENTS}) recipient
 WHERE report.processed_at IS NOT NULL AND report.recipient_id = recipient.id RETURNING recipient.address
"""  # noqa: S608 - constants
ERASE_PROVIDER_REPORTS = f"""
DELETE FROM inbound_providerreport report USING ({RECIPIENTS}) recipient
 WHERE report.processed_at IS NOT NULL AND report.message_id = recipient.provider_message_id
RETURNING recipient.address
"""  # noqa: S608 - constants
FOUND_REPORTS = 100
FIND_MAIL_REPORTS = f"""
SELECT report.number FROM inbound_mailreport report JOIN ({RECIPIENTS}) recipient ON report.recipient_id = recipient.id
 WHERE report.number > %(after)s ORDER BY 1 LIMIT %(limit)s
"""  # noqa: S608 - constants
FIND_PROVIDER_REPORTS = f"""
SELECT report.number FROM inbound_providerreport report
  JOIN ({RECIPIENTS}) recipient ON report.message_id = recipient.provider_message_id
 WHERE report.number > %(after)s ORDER BY 1 LIMIT %(limit)s
"""  # noqa: S608 - constants
# A report quotes the address in the spelling of the remote host, so the comparison ignores case.
ERASE = """
DELETE FROM inbound_mailreport
 WHERE processed_at IS NOT NULL AND (lower(sender) = lower(%(address)s)
    OR position(encode(convert_to(lower(%(address)s), 'UTF8'), 'escape') in lower(encode(source, 'escape'))) > 0);
DELETE FROM inbound_providerreport
 WHERE processed_at IS NOT NULL AND position(lower(%(address)s) in lower(event::text)) > 0
"""


def claim(kind: type[InboundReport]) -> list[Claim]:
    """Claim due rows.

    A row claimed before and not settled is claimed alone: if it crashes the process, no other row is affected.
    """
    queue = QUEUES[kind]
    rows = queue.claim_due(CLAIM_BATCH_SIZE, condition="attempts = 0") or queue.claim_due(1, condition="attempts > 0")
    return [Claim(*row) for row in rows]


def load(kind: type[T], claims: Sequence[Claim]) -> list[T]:
    """Return claimed rows in order of arrival."""
    return list(kind.objects.filter(number__in=[claim.key for claim in claims]).order_by("number"))


def waiting_time(row: InboundReport) -> timedelta:
    """Return the age of a claimed row, by the database clock, since the local clock may be wrong."""
    return row.due_at - timedelta(seconds=CLAIM_SECONDS) - row.received_at


def settle(kind: type[T], statuses: Mapping[int, InboundReport.ReportStatus]) -> None:
    """Record the final status of rows, by number, and take them off the queue.

    A report about a deleted email is emptied: no erasure would find it (docs/decisions/0374).
    """
    for status in set(statuses.values()):
        numbers = [number for number, final in statuses.items() if final is status]
        emptied = EMPTIED[kind] if status is InboundReport.ReportStatus.UNKNOWN_RECIPIENT else {}
        kind.objects.filter(number__in=numbers).update(verdict=status, processed_at=Now(), **emptied)


def forget(kind: type[T], numbers: Collection[int]) -> None:
    """Delete settled rows whose events leave no trace (docs/decisions/0376)."""
    if numbers:
        kind.objects.filter(number__in=numbers).delete()


def postpone(row: InboundReport, *, seconds: float) -> None:
    """Make a row due again after `seconds` and reset its attempts, unless another process has claimed it."""
    claim = Claim(row.number, row.attempts, row.attempts)
    changes = "attempts = 0, due_at = now() + make_interval(secs => %(seconds)s)"
    QUEUES[type(row)].update_leased([claim], changes, seconds=seconds)


def purge(kind: type[T]) -> int:
    """Delete a batch of rows settled more than RETENTION_DAYS ago; return the number deleted."""
    return len(run(PURGE.format(table=kind.table()), [RETENTION_DAYS, PURGE_BATCH_SIZE]))


def find_mail_reports(scope: ErasureScope, *, after: int) -> list[MailReport]:
    """Return a page of the messages that servers sent back about emails to the addresses, by their numbers."""
    return list(MailReport.objects.filter(number__in=_find(FIND_MAIL_REPORTS, scope, after)).order_by("number"))


def find_provider_reports(scope: ErasureScope, *, after: int) -> list[ProviderReport]:
    """Return a page of the events of providers about emails to the addresses, by their numbers."""
    return list(ProviderReport.objects.filter(number__in=_find(FIND_PROVIDER_REPORTS, scope, after)).order_by("number"))


def erase_reports(scope: ErasureScope, _place: Any) -> StepResult:
    """Delete the processed reports about recipients of the workspace with the addresses, or that these sent.

    Unprocessed ones are due within a minute. Runs before the recipients are deleted.
    """
    values = _values_of(scope)
    result = StepResult()
    for statement in (ERASE_MAIL_REPORTS, ERASE_PROVIDER_REPORTS):
        for (address,) in run(statement, values):
            result.add([address], reports=1)
    for address in erase_senders(scope):
        result.add([address], reports=1)
    return result


def erase_all_reports(address: str) -> None:
    """Delete the processed reports that name an address, whatever they belong to."""
    for statement in ERASE.split(";"):
        run(statement, {"address": address})


def _find(statement: str, scope: ErasureScope, after: int) -> list[int]:
    return [number for (number,) in run(statement, {**_values_of(scope), "after": after, "limit": FOUND_REPORTS})]


def _values_of(scope: ErasureScope) -> dict[str, Any]:
    return {"addresses": list(scope.addresses), "workspace": to_uuid(scope.workspace_id, prefix="ws_")}
