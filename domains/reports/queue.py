"""The queue of stored reports: each is read once, and counted if it is about the domain of its address.

A row is claimed before it is read, so that one which ends its process is tried only MAX_ATTEMPTS times.
"""

import logging
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, timedelta
from itertools import islice

from django.db import IntegrityError, InterfaceError, OperationalError, transaction
from django.db.models.functions import Now

from core.lib.ids import from_uuid
from core.lib.sql import database_time, run
from core.lib.worker.lease_queue import Claim, LeaseQueue
from core.lib.worker.shutdown import is_stopping
from core.lib.worker.unused_claims import UnusedClaims
from domains.models import DmarcRow, Domain, DomainReport, TlsRow
from domains.names import InvalidDomainName, to_a_label
from domains.reports.classification import classify_rows
from domains.reports.organizations import organization_of
from domains.reports.reading.documents import read_report
from domains.reports.reading.results import ReadDmarcRow, ReadReport, ReadTlsRow, ReportRefused, UnreadableReport

log = logging.getLogger("postrider.domains")

State = DomainReport.ReadingState

MAX_ATTEMPTS = 3
ROW_BATCH = 1_000
# Rows of one domain that are stored in a day: anyone may send reports (docs/decisions/0397).
MAX_DAILY_ROWS = 100_000
# A report is about one day, sometimes a week; reporters repeat old ones.
OLDEST, LATEST, LONGEST = timedelta(days=60), timedelta(days=2), timedelta(days=32)
QUEUE = LeaseQueue(table="domains_domainreport", fence="attempts", condition="read_at IS NULL", lease_seconds=300)
# Claims during which the database stopped responding.
UNUSED: UnusedClaims[Claim] = UnusedClaims(QUEUE.give_back)
OLDEST_UNREAD = "SELECT extract(epoch FROM now() - min(received_at)) FROM domains_domainreport WHERE read_at IS NULL"
ENDED_PROCESS = "The report could not be read in three attempts."


def read_due_reports() -> None:
    """Read the reports that are due, one after the other. Any number of processes may run this at once."""
    UNUSED.give_back()
    while not is_stopping() and _read_next():
        pass


def oldest_unread_seconds() -> float:
    """Return the age of the oldest report that is not read; 0 without one."""
    ((seconds,),) = run(OLDEST_UNREAD)
    return float(seconds or 0)


def _read_next() -> bool:
    with UNUSED.claiming() as claims:
        claims.extend(Claim(*row) for row in QUEUE.claim_due(1))
        for claim in claims:
            _read_claimed(claim)
    return bool(claims)


def _read_claimed(claim: Claim) -> None:
    """Read a report and record the result. After an error of this program, it is due again when its lease ends."""
    rows = DomainReport.objects.select_related("domain").filter(attempts=claim.fence, read_at=None)
    report = rows.filter(id=from_uuid(claim.key, prefix="rpt_")).first()
    if report is None:
        return
    if claim.attempt > MAX_ATTEMPTS:
        _settle(report, State.UNREADABLE, error=ENDED_PROCESS)
        return
    try:
        _save(report, read_report(bytes(report.source or b"")))
    except UnreadableReport as error:
        _settle(report, State.UNREADABLE, error=str(error))
    except ReportRefused as error:
        _settle(report, State.REFUSED, error=str(error))
    except (OperationalError, InterfaceError):
        raise
    except Exception:
        log.exception("a report could not be read", extra={"data": {"report": report.id}})


def _save(report: DomainReport, read: ReadReport) -> None:
    try:
        save_report(report, read)
    except IntegrityError:
        # The same report was counted in the meantime.
        save_report(report, read)


@transaction.atomic
def save_report(report: DomainReport, read: ReadReport) -> None:
    """Record a report that was read, and its rows if it is counted.

    Raises IntegrityError if another process counts the same report at this time.
    """
    locked = DomainReport.objects.select_for_update().filter(id=report.id, attempts=report.attempts, read_at=None)
    if not locked.exists():
        return
    report.kind = DomainReport.AggregateKind(read.kind)
    report.reporter = read.reporter[:255]
    report.reporter_domain = read.reporter_domain[:253]
    report.report_id = read.report_id
    report.begin_at, report.end_at = read.begin_at, read.end_at
    report.policy = read.policy
    report.organization = organization_of(read)
    report.digest = read.digest
    state, error = judge_report(report, read)
    changes = {"source": b""} if state is State.REPEATED else {}
    DomainReport.objects.filter(id=report.id).update(
        kind=report.kind, reporter=report.reporter, reporter_domain=report.reporter_domain, report_id=report.report_id,
        organization=report.organization, begin_at=report.begin_at, end_at=report.end_at, policy=report.policy,
        digest=report.digest, state=state, error=error, read_at=Now(), **changes,
    )  # fmt: skip
    if state is State.READ:
        _save_rows(report, read)
        classify_rows(report)


def judge_report(report: DomainReport, read: ReadReport) -> tuple[DomainReport.ReadingState, str]:
    """Return the state of a report that was read, and the reason why it is not counted.

    Anyone may write to the address: the report must be about its domain, or names below it.
    """
    foreign = [name for name in read.domains if not is_about(report.domain, name)]
    if foreign:
        return State.FOREIGN, f"The report is about {foreign[0][:100]}."
    now = database_time()
    is_usual = now - OLDEST <= read.begin_at <= read.end_at <= now + LATEST and read.end_at - read.begin_at <= LONGEST
    if not is_usual:
        return State.REFUSED, "The time range of the report is too long, or too far from today."
    same = DomainReport.objects.filter(
        domain=report.domain_id,
        kind=report.kind,
        reporter=report.reporter,
        report_id=report.report_id,
        state=State.READ,
    )
    if known := same.first():
        if bytes(known.digest) == report.digest:
            return State.REPEATED, "The report was received before."
        return State.CONFLICT, "A report with the same id and other rows was received before."
    if _daily_rows(report) + len(read.rows) > MAX_DAILY_ROWS:
        return State.REFUSED, f"Reports of this domain had more than {MAX_DAILY_ROWS} rows in a day."
    return State.READ, ""


def is_about(domain: Domain, name: str) -> bool:
    """Return whether a name is that of a domain, or below it."""
    try:
        label = to_a_label(name.strip().rstrip("."))
    except InvalidDomainName:
        return False
    return f".{label}".endswith(f".{domain.name}")


def build_dmarc_row(report: DomainReport, row: ReadDmarcRow) -> DmarcRow:
    """Return a row of a counted report, without saving it."""
    assert report.begin_at
    values = {
        **vars(row),
        "dkim_results": [asdict(result) for result in row.dkim_results],
        "spf_results": [asdict(result) for result in row.spf_results],
        "reasons": [asdict(reason) for reason in row.reasons],
    }
    return DmarcRow(report=report, domain_id=report.domain_id, day=report.begin_at.astimezone(UTC).date(), **values)


def _build_tls_row(report: DomainReport, row: ReadTlsRow) -> TlsRow:
    assert report.begin_at
    values = {**vars(row), "mx_hosts": [*row.mx_hosts]}
    return TlsRow(report=report, domain_id=report.domain_id, day=report.begin_at.astimezone(UTC).date(), **values)


def _save_rows(report: DomainReport, read: ReadReport) -> None:
    dmarc = (build_dmarc_row(report, row) for row in read.rows if isinstance(row, ReadDmarcRow))
    while batch := list(islice(dmarc, ROW_BATCH)):
        DmarcRow.objects.bulk_create(batch)
    tls = (_build_tls_row(report, row) for row in read.rows if isinstance(row, ReadTlsRow))
    while rows := list(islice(tls, ROW_BATCH)):
        TlsRow.objects.bulk_create(rows)


def _daily_rows(report: DomainReport) -> int:
    """Return the rows of a domain's reports that arrived within a day."""
    today = DomainReport.objects.filter(
        domain=report.domain_id, state=State.READ, received_at__gt=Now() - timedelta(days=1)
    ).values("id")
    counts: Iterator[int] = (model.objects.filter(report__in=today).count() for model in (DmarcRow, TlsRow))
    return sum(counts)


def _settle(report: DomainReport, state: DomainReport.ReadingState, *, error: str) -> None:
    """Record that a report is not counted, and take it off the queue."""
    rows = DomainReport.objects.filter(id=report.id, attempts=report.attempts, read_at=None)
    rows.update(state=state, error=error[:255], read_at=Now())
