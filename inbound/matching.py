"""Inbound messages matched to the recipients they report on.

The token of a return path identifies its recipient and cannot be guessed. A report must still name that
recipient, by original or final address; one that names only other addresses changes nothing (docs/decisions/0030).
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from delivery.bounces.replies import safe_text
from emails.events.opens_and_clicks import Hit
from emails.events.reports import ReportedEvent
from emails.models import Event, Recipient
from emails.sending.return_path import read_return_path
from inbound.models import InboundReport, MailReport
from inbound.reports.reading import read_report
from inbound.reports.report import RecipientStatus, Report, ReportKind
from lib.ids import InvalidId, to_uuid
from lib.tokens import InvalidToken

log = logging.getLogger("postrider.inbound")

ReportStatus = InboundReport.ReportStatus

COMPLAINTS = {ReportKind.COMPLAINT: Event.EventKind.COMPLAINED, ReportKind.OPT_OUT: Event.EventKind.UNSUBSCRIBED}
MAX_REFERENCES = 10


@dataclass(frozen=True)
class MatchResult:
    """The event to record for a row, or its final status without one. With neither, the row is matched again later."""

    reported: ReportedEvent | Hit | None = None
    verdict: ReportStatus | None = None


def read_mail_report(row: MailReport) -> tuple[list[str], Report]:
    """Return the ids of candidate recipients, the most certain first, and the report itself."""
    report = read_report(bytes(row.source))
    if row.recipient_id:
        return [row.recipient_id], report
    # Feedback loops send complaints to a registered mailbox; the enclosed message identifies the recipient.
    return list(_referenced_ids(report)), report


def find_addresses(candidates: Iterable[list[str]]) -> dict[str, str]:
    """Return the address of each candidate recipient that still exists, by id, in one query."""
    ids = {recipient_id for recipient_ids in candidates for recipient_id in recipient_ids}
    return dict(Recipient.objects.filter(id__in=ids).values_list("id", "address")) if ids else {}


def match_report(candidates: list[str], report: Report, *, addresses: Mapping[str, str]) -> MatchResult:
    """Return the event to record for the first known candidate, or the status of a report without one."""
    recipient_id = next((candidate for candidate in candidates if candidate in addresses), None)
    if not recipient_id:
        log.info("a report matches no known recipient", extra={"kind": report.kind.value})
        return MatchResult(verdict=ReportStatus.UNKNOWN_RECIPIENT if candidates else ReportStatus.MANUAL_REVIEW)
    if report.kind in COMPLAINTS:
        return MatchResult(ReportedEvent(recipient_id, COMPLAINTS[report.kind]))
    status = select_status(report, addresses[recipient_id])
    if status is None:
        log.info("a report names another recipient", extra={"recipient": recipient_id})
        return MatchResult(verdict=ReportStatus.OTHER_RECIPIENT)
    return _to_event(status, recipient_id)


def select_status(report: Report, address: str) -> RecipientStatus | None:
    """Return the most severe status for an address; None if the report names only others.

    A status without an address applies to the recipient of the return path.
    """
    if not report.recipient_statuses:
        return RecipientStatus(report.kind)
    named = [status for status in report.recipient_statuses if status.recipients]
    matching = [status for status in named if _normalized(address) in map(_normalized, status.recipients)]
    if named and not matching:
        return None
    return Report(report.kind, tuple(matching or report.recipient_statuses)).most_severe


def _to_event(status: RecipientStatus, recipient_id: str) -> MatchResult:
    kind = _event_kind(status)
    if kind is None:
        return MatchResult(verdict=ReportStatus.NO_DELIVERY_STATUS)
    details = {} if kind is Event.EventKind.DELIVERED else _details(status)
    return MatchResult(ReportedEvent(recipient_id, kind, details, is_recipient_fault=status.is_hard))


def _event_kind(status: RecipientStatus) -> Event.EventKind | None:
    if status.kind is ReportKind.BOUNCE:
        return Event.EventKind.BOUNCED if status.is_permanent else Event.EventKind.FAILED
    return {ReportKind.DELAY: Event.EventKind.DEFERRED, ReportKind.DELIVERED: Event.EventKind.DELIVERED}.get(
        status.kind
    )


def _details(status: RecipientStatus) -> dict[str, object]:
    message = safe_text(status.diagnostic) or f"Delivery report: {status.kind.value} {status.status}".rstrip()
    return {
        "code": status.code or None,
        "enhancedCode": status.status or None,
        "message": message,
        "reason": status.reason or "undetermined",
    }


def _normalized(address: str) -> str:
    """Return an address in lower case with its domain as an A-label."""
    local, _, domain = address.casefold().rpartition("@")
    try:
        name = domain.encode("idna").decode() if not domain.isascii() else domain
    except UnicodeError:
        name = domain
    return f"{local}@{name}"


def _referenced_ids(report: Report) -> Iterator[str]:
    """Yield the recipient ids in the return paths and Message-IDs that a complaint encloses."""
    for reference in report.references[:MAX_REFERENCES]:
        local = reference.partition("@")[0]
        try:
            yield read_return_path(local)
        except InvalidToken:
            if _is_id(local):
                yield local


def _is_id(text: str) -> bool:
    try:
        to_uuid(text)
    except InvalidId:
        return False
    return True
