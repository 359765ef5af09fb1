"""Inbound messages matched to the recipients they report on.

The token of a return path identifies its recipient and cannot be guessed. A report must still name that
recipient, by original or final address; one that names only other addresses changes nothing (docs/decisions/0030).
A complaint sent to abuse@ is believed if it encloses such a token or a message that we signed (docs/decisions/0078).
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from django.conf import settings

from core.delivery.bounces.classification import names_sender
from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import safe_text
from core.delivery.message import dkim
from core.lib.ids import is_id
from core.lib.tokens import InvalidToken
from domains.models import DkimKey
from emails.feedback.opens_and_clicks import Hit
from emails.feedback.reports import ReportedEvent
from emails.models import Email, Recipient
from emails.sending.return_path import read_return_path
from events.kinds import EventKind
from interfaces.inbound.models import InboundReport, MailReport
from interfaces.inbound.reports.mime import read_message
from interfaces.inbound.reports.reading import read_report
from interfaces.inbound.reports.report import RecipientStatus, Report, ReportKind

log = logging.getLogger("postrider.inbound")

ReportStatus = InboundReport.ReportStatus

COMPLAINTS = {ReportKind.COMPLAINT: EventKind.COMPLAINED, ReportKind.OPT_OUT: EventKind.UNSUBSCRIBED}
MAX_REFERENCES = 10
MAX_ENCLOSED = 3


@dataclass(frozen=True)
class ReportedRecipient:
    """A recipient that may be the one reported on. from_domain: the domain of the email's sender."""

    id: str
    address: str
    from_domain: str

    def is_sender_named(self, text: str) -> bool:
        """Return whether a host's text names the sender, and so is not about this recipient."""
        names = (self.from_domain, settings.RETURN_PATH_DOMAIN, settings.EHLO_NAME)
        return names_sender(text, names=names, recipient=self.address)


@dataclass(frozen=True)
class MatchResult:
    """The event to record for a row, or its final status without one. With neither, the row is matched again later."""

    reported: ReportedEvent | Hit | None = None
    status: ReportStatus | None = None


def read_mail_report(row: MailReport) -> tuple[list[str], Report]:
    """Return the ids of candidate recipients, the most certain first, and the report itself."""
    report = read_report(bytes(row.source))
    if row.recipient_id:
        return [row.recipient_id], report
    # Feedback loops send complaints to a registered mailbox; the enclosed message identifies the recipient.
    return list(_sealed_ids(report)) or list(_signed_ids(report)), report


def find_recipients(candidates: Iterable[list[str]]) -> dict[str, ReportedRecipient]:
    """Return each candidate recipient that still exists, by id, in one query."""
    ids = {recipient_id for recipient_ids in candidates for recipient_id in recipient_ids}
    rows = Recipient.objects.filter(id__in=ids).values_list("id", "address", "email__from_domain") if ids else ()
    return {row[0]: ReportedRecipient(*row) for row in rows}


def match_report(candidates: list[str], report: Report, *, recipients: Mapping[str, ReportedRecipient]) -> MatchResult:
    """Return the event to record for the first known candidate, or the status of a report without one."""
    recipient_id = next((candidate for candidate in candidates if candidate in recipients), None)
    if not recipient_id:
        log.info("a report matches no known recipient", extra={"data": {"kind": report.kind.value}})
        return MatchResult(status=ReportStatus.UNKNOWN_RECIPIENT if candidates else ReportStatus.MANUAL_REVIEW)
    if report.kind in COMPLAINTS:
        return MatchResult(ReportedEvent(recipient_id, COMPLAINTS[report.kind]))
    recipient = recipients[recipient_id]
    status = select_status(report, recipient.address)
    if status is None:
        log.info("a report names another recipient", extra={"data": {"recipient": recipient_id}})
        return MatchResult(status=ReportStatus.OTHER_RECIPIENT)
    return _to_event(_without_sender_faults(status, recipient), recipient_id)


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


def _without_sender_faults(status: RecipientStatus, recipient: ReportedRecipient) -> RecipientStatus:
    """Return a status that is not hard if its text names the sender."""
    if not status.is_hard or not recipient.is_sender_named(status.diagnostic):
        return status
    return replace(status, reason=FailureReason.POLICY, is_hard=False)


def _to_event(status: RecipientStatus, recipient_id: str) -> MatchResult:
    kind = _event_kind(status)
    if kind is None:
        return MatchResult(status=ReportStatus.NO_DELIVERY_STATUS)
    details = {} if kind is EventKind.DELIVERED else _details(status)
    return MatchResult(ReportedEvent(recipient_id, kind, details, is_recipient_fault=status.is_hard))


def _event_kind(status: RecipientStatus) -> EventKind | None:
    if status.kind is ReportKind.BOUNCE:
        return EventKind.BOUNCED if status.is_permanent else EventKind.FAILED
    return {ReportKind.DELAY: EventKind.DEFERRED, ReportKind.DELIVERED: EventKind.DELIVERED}.get(status.kind)


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


def _sealed_ids(report: Report) -> Iterator[str]:
    """Yield the recipient ids in the return paths that a complaint encloses."""
    for address in report.return_paths[:MAX_REFERENCES]:
        with suppress(InvalidToken):
            yield read_return_path(address.partition("@")[0])


def _signed_ids(report: Report) -> Iterator[str]:
    """Yield the recipient ids of the enclosed messages with our valid signature over their Message-ID."""
    for message in report.enclosed[:MAX_ENCLOSED]:
        recipient_id = _id_of_message(message)
        if recipient_id and _is_signed_for(message, recipient_id):
            yield recipient_id


def _is_signed_for(message: bytes, recipient_id: str) -> bool:
    """Check that a message is signed with a key of the domain and workspace from which it was sent."""
    email = Email.objects.filter(recipients__id=recipient_id).first()
    if email is None:
        return False
    keys = DkimKey.objects.filter(domain__workspace=email.workspace_id, domain__name=email.from_domain)
    public_keys = dict(keys.values_list("selector", "public_key"))
    return dkim.verify(message, domain=email.from_domain, public_keys=public_keys)


def _id_of_message(message: bytes) -> str:
    """Return the recipient id in a message's Message-ID, or ""."""
    local = read_message(message).header("message-id").strip(" <>").partition("@")[0]
    return local if is_id(local) else ""
