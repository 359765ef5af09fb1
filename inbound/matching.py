"""What a message to a return path means for the recipient that the return path belongs to.

The token is the recipient: nobody else can have it. A report must still be about that recipient, by its
original or its final address; one that names others alone changes nothing (docs/decisions/0030).
"""

import logging
from collections.abc import Iterable, Iterator, Mapping

from delivery.bounces.replies import safe_text
from emails.events.reports import Reported
from emails.models import Event, Recipient
from emails.sending.return_path import recipient_of
from inbound.models import MailReport, Told
from inbound.reports.facts import Fact, Kind, Report
from inbound.reports.reading import read_report
from lib.ids import InvalidId, to_uuid
from lib.tokens import InvalidToken

log = logging.getLogger("postrider.inbound")

COMPLAINTS = {Kind.COMPLAINT: Event.Kind.COMPLAINED, Kind.OPT_OUT: Event.Kind.UNSUBSCRIBED}
MAX_REFERENCES = 10

Outcome = tuple[Reported | None, Told.ReportStatus | None]


def read(row: MailReport) -> tuple[list[str], Report]:
    """Return whom a message may be about, the surest first, and what it says."""
    report = read_report(bytes(row.source))
    if row.recipient_id:
        return [row.recipient_id], report
    # Hosts send complaints to the mailbox that was registered with them; what they enclose says whose copy it was.
    return list(_referred(report)), report


def addresses(claims: Iterable[list[str]]) -> dict[str, str]:
    """Return the address of every recipient that is still there, in one query."""
    ids = {recipient_id for claimed in claims for recipient_id in claimed}
    return dict(Recipient.objects.filter(id__in=ids).values_list("id", "address")) if ids else {}


def of_report(claimed: list[str], report: Report, *, known: Mapping[str, str]) -> Outcome:
    """Return what to record, or the verdict that there is nothing to."""
    recipient_id = next((one for one in claimed if one in known), None)
    if not recipient_id:
        verdict = Told.ReportStatus.NOT_OURS if claimed else Told.ReportStatus.FOR_PEOPLE
        log.info("a report is about nobody that is known", extra={"kind": report.kind.value})
        return None, verdict
    if report.kind in COMPLAINTS:
        return Reported(recipient_id, COMPLAINTS[report.kind]), None
    fact = fact_about(report, known[recipient_id])
    if fact is None:
        log.info("a report names somebody else", extra={"recipient": recipient_id})
        return None, Told.ReportStatus.SOMEBODY_ELSE
    return _told(fact, recipient_id)


def fact_about(report: Report, address: str) -> Fact | None:
    """Return what a report says about an address; what names nobody is about the one it came back for."""
    if not report.facts:
        return Fact(report.kind)
    named = [fact for fact in report.facts if fact.recipients]
    mine = [fact for fact in named if _comparable(address) in map(_comparable, fact.recipients)]
    if named and not mine:
        return None
    return Report(report.kind, tuple(mine or report.facts)).gravest


def _told(fact: Fact, recipient_id: str) -> Outcome:
    kind = _event_kind(fact)
    if kind is None:
        return None, Told.ReportStatus.SAYS_NOTHING
    details = {} if kind is Event.Kind.DELIVERED else _details(fact)
    return Reported(recipient_id, kind, details, is_recipient_fault=fact.is_hard), None


def _event_kind(fact: Fact) -> Event.Kind | None:
    if fact.kind is Kind.BOUNCE:
        return Event.Kind.BOUNCED if fact.is_permanent else Event.Kind.FAILED
    return {Kind.DELAY: Event.Kind.DEFERRED, Kind.DELIVERED: Event.Kind.DELIVERED}.get(fact.kind)


def _details(fact: Fact) -> dict[str, object]:
    message = safe_text(fact.diagnostic) or f"A report says: {fact.kind.value} {fact.status}".rstrip()
    return {
        "code": fact.code or None,
        "enhancedCode": fact.status or None,
        "message": message,
        "reason": fact.reason or "undetermined",
    }


def _comparable(address: str) -> str:
    """Return what two spellings of one address share: neither case nor the form of its domain makes another person."""
    local, _, domain = address.casefold().rpartition("@")
    try:
        name = domain.encode("idna").decode() if not domain.isascii() else domain
    except UnicodeError:
        name = domain
    return f"{local}@{name}"


def _referred(report: Report) -> Iterator[str]:
    """Yield the recipients whose return path or Message-ID a complaint holds."""
    for reference in report.references[:MAX_REFERENCES]:
        local = reference.partition("@")[0]
        try:
            yield recipient_of(local)
        except InvalidToken:
            if _is_id(local):
                yield local


def _is_id(text: str) -> bool:
    try:
        to_uuid(text)
    except InvalidId:
        return False
    return True
