"""Report processing: stored reports become events, after the sender got its reply.

A row is claimed, matched, and settled in the transaction that records its event. An error affects only its own
row, which is tried MAX_ATTEMPTS times and then set aside for manual review.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TypeVar

from django.db import InterfaceError, OperationalError, transaction

from core.lib.worker.failpoints import failpoint
from emails.feedback.opens_and_clicks import Hit, record_hits
from emails.feedback.reports import RecordResult, ReportedEvent, record_reports
from interfaces.inbound import matching, providers, queue
from interfaces.inbound.matching import MatchResult, ReportedRecipient, ReportStatus
from interfaces.inbound.models import InboundReport, MailReport, ProviderReport

log = logging.getLogger("postrider.inbound")

T = TypeVar("T", bound=InboundReport)
Matcher = Callable[[Sequence[T]], Mapping[int, MatchResult]]

# How long a provider event may wait until the worker records its message ID.
UNMATCHED_EVENT_LIFETIME = timedelta(hours=24)
FIRST_WAIT_SECONDS = 15.0
RECORDED_STATUSES = {
    RecordResult.NEW: ReportStatus.RECORDED,
    RecordResult.REPEATED: ReportStatus.DUPLICATE,
    RecordResult.UNKNOWN_RECIPIENT: ReportStatus.UNKNOWN_RECIPIENT,
}


def process_reports() -> None:
    """Process all due reports of both kinds. Any number of processes may run this at once."""
    _process(MailReport, match_mail_reports)
    _process(ProviderReport, match_provider_reports)


def purge_reports() -> None:
    """Delete reports settled longer ago than the retention period."""
    for kind in (MailReport, ProviderReport):
        while queue.purge(kind) == queue.PURGE_BATCH_SIZE:
            pass


def match_mail_reports(rows: Sequence[MailReport]) -> dict[int, MatchResult]:
    """Return the match of each message, by number; all recipients are read in one query."""
    reports = {row.number: matching.read_mail_report(row) for row in rows}
    recipients = matching.find_recipients(candidates for candidates, _ in reports.values())
    return {number: matching.match_report(*report, recipients=recipients) for number, report in reports.items()}


def match_provider_reports(rows: Sequence[ProviderReport]) -> dict[int, MatchResult]:
    """Return the match of each event, by number; an event with an unknown message ID waits."""
    recipients = providers.find_recipients(rows)
    return {row.number: _match_event(row, recipients.get(row.number)) for row in rows}


def _match_event(row: ProviderReport, recipient: ReportedRecipient | None) -> MatchResult:
    if recipient:
        return MatchResult(reported=providers.interpret_event(row, recipient))
    is_expired = queue.waiting_time(row) > UNMATCHED_EVENT_LIFETIME
    return MatchResult(status=ReportStatus.UNKNOWN_RECIPIENT if is_expired else None)


def _process(kind: type[T], matcher: Matcher[T]) -> None:
    queue.UNUSED[kind].give_back()
    while _process_batch(kind, matcher):
        pass


def _process_batch(kind: type[T], matcher: Matcher[T]) -> bool:
    """Claim rows and settle them; return whether there were any."""
    with queue.UNUSED[kind].claiming() as claims:
        claims.extend(queue.claim(kind))
        if claims:
            failpoint("inbound.after_claim")
            _settle_claimed(kind, queue.load(kind, claims), matcher)
    return bool(claims)


def _settle_claimed(kind: type[T], rows: Sequence[T], matcher: Matcher[T]) -> None:
    exhausted = {row.number: ReportStatus.POISON for row in rows if row.attempts > queue.MAX_ATTEMPTS}
    if exhausted:
        log.error("reports failed too often", extra={"data": {"numbers": list(exhausted)}})
        queue.settle(kind, exhausted)
    _settle_isolating_errors(kind, [row for row in rows if row.number not in exhausted], matcher)


def _settle_isolating_errors(kind: type[T], rows: Sequence[T], matcher: Matcher[T]) -> None:
    """Settle rows together, or one by one after an error."""
    try:
        _settle(kind, rows, matcher)
    except (OperationalError, InterfaceError):
        raise
    except Exception:
        if len(rows) == 1:
            log.exception("a report could not be processed", extra={"data": {"number": rows[0].number}})
            return
        for row in rows:
            _settle_isolating_errors(kind, [row], matcher)


def _settle(kind: type[T], rows: Sequence[T], matcher: Matcher[T]) -> None:
    """Record the events of rows, and settle the rows in the same transaction.

    Opens and clicks use a second transaction: record_reports and record_hits both lock recipients before emails,
    so neither may follow the other in one transaction. Reports come first because recording them again is harmless.
    """
    if not rows:
        return
    matches = matcher(rows)
    with transaction.atomic():
        reports = {
            number: match.reported for number, match in matches.items() if isinstance(match.reported, ReportedEvent)
        }
        results = zip(reports, record_reports(list(reports.values())), strict=True)
        final = {number: match.status for number, match in matches.items() if match.status}
        queue.settle(kind, final | {number: RECORDED_STATUSES[result] for number, result in results})
        failpoint("inbound.before_settle_commit")
    with transaction.atomic():
        hits = {number: match.reported for number, match in matches.items() if isinstance(match.reported, Hit)}
        only_counted = record_hits(list(hits.values()))
        queue.settle(kind, dict.fromkeys(hits, ReportStatus.RECORDED))
        queue.forget(kind, [number for number, hit in hits.items() if hit.recipient_id in only_counted])
    failpoint("inbound.after_settle")
    for row in rows:
        if matches[row.number] == MatchResult():
            queue.postpone(row, seconds=_retry_seconds(row))


def _retry_seconds(row: InboundReport) -> float:
    """Return the wait before a row is matched again: half its age, at least FIRST_WAIT_SECONDS."""
    return max(FIRST_WAIT_SECONDS, queue.waiting_time(row).total_seconds() / 2)
