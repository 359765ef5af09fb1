"""The daily run of TLS reports: each is a row with a due time within four hours after midnight UTC.

The periodic task may be lost or run twice at once. Times are the database's.
"""

import logging
import random
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from datetime import time as time_of_day

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now
from django.utils.translation import override

from console.system_mail.models import SystemMailKind, TlsReport
from console.system_mail.services import queue_system_mail
from console.system_mail.tls_reports.content import compose_content, compress, count_sessions
from console.system_mail.tls_reports.message import find_report_key
from console.system_mail.tls_reports.posting import post_files
from core.delivery.bounces.replies import safe_text
from core.lib.sql import run
from domains.received_domains import read_received_domains
from emails.models import MtaStsPolicy
from emails.tls_policies.report_counts import delete_counts, read_counts

log = logging.getLogger("postrider.system_mail")

LOCK = "SELECT pg_advisory_xact_lock(hashtext('tls reports'))"
# Transactions that began before midnight have ended by then.
NOW = "SELECT now(), (now() AT TIME ZONE 'UTC' - interval '5 minutes')::date - 1"
MAX_REPORTS = 10_000
# Domains whose counts are read in one statement.
DOMAINS_AT_ONCE = 1000
# RFC 8460, section 5.5.
MAX_DELAY, MAX_TIME = timedelta(hours=4), timedelta(hours=24)
RETRY = timedelta(hours=1)
REPORTS_AT_ONCE = 100
# The time of one run; the others are due in the next one.
RUN_SECONDS = 240.0
RETENTION = timedelta(days=7)
MAX_ERROR_LENGTH = 300
TEXT = """This is a report about TLS in the delivery of email to {domain} on {day} (UTC).
The domain asks for it with its DNS record at _smtp._tls.{domain} (RFC 8460).
Successful sessions: {successes}. Sessions with a failure: {failures}."""


def send_tls_reports() -> None:
    """Make the reports of yesterday once, send those that are due, and delete old ones."""
    if not settings.TLSRPT_DOMAIN:
        return
    start_reports()
    send_due()
    TlsReport.objects.filter(day__lt=Now() - RETENTION).delete()


@transaction.atomic
def start_reports() -> None:
    """Make the reports of yesterday, and delete the counts of the day and of earlier ones."""
    run(LOCK)
    ((now, day),) = run(NOW)
    if TlsReport.objects.filter(day=day).exists():
        return
    own, left = read_received_domains(), MAX_REPORTS
    for chunk in _asking_domains():
        reports = list(_reports([one for one in chunk if one.domain not in own], day=day, now=now))
        TlsReport.objects.bulk_create(reports[:left])
        left = max(left - len(reports), 0)
        delete_counts([one.domain for one in chunk], day=day)
    if not left:
        log.warning("there may be more TLS reports than are sent in a day", extra={"data": {"limit": MAX_REPORTS}})


def _asking_domains() -> Iterator[list[MtaStsPolicy]]:
    """Yield the rows of the domains that ask for reports, some at a time."""
    rows, last = MtaStsPolicy.objects.exclude(report_to="").order_by("domain"), ""
    while chunk := list(rows.filter(domain__gt=last)[:DOMAINS_AT_ONCE]):
        yield chunk
        last = chunk[-1].domain


def _reports(policies: Sequence[MtaStsPolicy], *, day: date, now: datetime) -> Iterator[TlsReport]:
    """Yield the reports of the domains that messages were sent to."""
    counts = read_counts([policy.domain for policy in policies], day=day)
    midnight = datetime.combine(day + timedelta(days=1), time_of_day.min, UTC)
    for policy in policies:
        if found := counts.get(policy.domain):
            due_at = max(midnight + MAX_DELAY * random.random(), now)  # noqa: S311 - spreads load, not a secret
            yield TlsReport(
                domain=policy.domain,
                day=day,
                report_to=policy.report_to,
                content=compose_content(policy, found, day=day),
                successes=count_sessions(found, successful=True),
                failures=count_sessions(found, successful=False),
                due_at=due_at,
                ends_at=due_at + MAX_TIME,
            )


def send_due() -> None:
    """Send the reports that are due, as far as the time of one run goes."""
    until = time.monotonic() + RUN_SECONDS
    while time.monotonic() < until and (reports := _claim()):
        is_mail = {report.pk: report.report_to.startswith("mailto:") for report in reports}
        for report in reports:
            if is_mail[report.pk]:
                _queue(report)
        _post([report for report in reports if not is_mail[report.pk]])


@transaction.atomic
def _claim() -> list[TlsReport]:
    """Return some due reports; one whose worker dies is due again after RETRY. Others past their time have failed."""
    due = TlsReport.objects.filter(due_at__lte=Now())
    due.filter(ends_at__lte=Now()).update(due_at=None)
    ids = list(
        due.select_for_update(skip_locked=True).order_by("due_at").values_list("pk", flat=True)[:REPORTS_AT_ONCE]
    )
    TlsReport.objects.filter(pk__in=ids).update(due_at=Now() + RETRY)
    return list(TlsReport.objects.filter(pk__in=ids))


def _queue(report: TlsReport) -> None:
    """Queue the system email with a report."""
    if find_report_key() is None:
        _record_error(report, "No workspace has verified TLSRPT_DOMAIN, whose key signs reports.")
        return
    with transaction.atomic(), override("en"):
        # Another worker, if this one was too slow, waits here.
        row = TlsReport.objects.select_for_update().filter(pk=report.pk, due_at__isnull=False).first()
        if row is None:
            return
        row.mail = queue_system_mail(
            to=row.report_to.removeprefix("mailto:"),
            kind=SystemMailKind.TLS_REPORT,
            subject=f"Report Domain: {row.domain} Submitter: {settings.TLSRPT_DOMAIN} "
            f"Report-ID: <{row.content['report-id']}>",
            text=TEXT.format(domain=row.domain, day=row.day, successes=row.successes, failures=row.failures),
        )
        row.due_at, row.error = None, ""
        row.save(update_fields=["mail", "due_at", "error"])


def _post(reports: Sequence[TlsReport]) -> None:
    """Post reports, and record the results."""
    if not reports:
        return
    errors = post_files({str(one.pk): (one.report_to, compress(one.content)) for one in reports})
    for report in reports:
        if error := errors[str(report.pk)]:
            _record_error(report, error)
        else:
            TlsReport.objects.filter(pk=report.pk).update(posted_at=Now(), due_at=None, error="")


def _record_error(report: TlsReport, error: str) -> None:
    """Record a failed attempt; the next one, in an hour, is the last one if no further fits into the time."""
    rows = TlsReport.objects.filter(pk=report.pk, due_at__isnull=False)
    rows.update(error=safe_text(error, max_length=MAX_ERROR_LENGTH))
    rows.filter(ends_at__lte=F("due_at")).update(due_at=None)
