"""Message disposition notifications (RFC 8098): receipts, and rejections by a recipient's Sieve script (RFC 5429)."""

from core.delivery.bounces.reasons import RECIPIENT_FAULTS, FailureReason
from interfaces.inbound.reports import patterns
from interfaces.inbound.reports.classification import classify_notice
from interfaces.inbound.reports.dsn import MAX_DIAGNOSTIC, parse_address_field
from interfaces.inbound.reports.mime import ReportMessage, read_status_fields
from interfaces.inbound.reports.report import RecipientStatus, Report, ReportKind, build_report

TYPE = "message/disposition-notification"
RECIPIENTS = ("original-recipient", "final-recipient")
REJECTION_FIELDS = ("auto-submitted", "subject")


def read_disposition(message: ReportMessage, notice: str) -> Report | None:
    """Return the report in a message with a disposition; None for another message.

    A rejection is never a hard bounce: the recipient has chosen its text, such as "No such user", and may change the
    script (docs/decisions/0303).
    """
    part = next((leaf for leaf in message.leaves if leaf.kind == TYPE), None)
    if not part:
        return None
    if not _is_rejection(message, notice):
        return Report(ReportKind.AUTO_REPLY)
    fields = dict(read_status_fields(part.text.strip("\n")))
    named = (parse_address_field(fields.get(name, "")) for name in RECIPIENTS)
    found = classify_notice(notice)
    is_explained = found.reason not in RECIPIENT_FAULTS and found.reason is not FailureReason.UNDETERMINED
    status = RecipientStatus(
        ReportKind.BOUNCE,
        tuple(dict.fromkeys(address for address in named if address)),
        diagnostic=" ".join(notice.split())[:MAX_DIAGNOSTIC],
        reason=found.reason if is_explained else FailureReason.POLICY,
        is_permanent=True,
    )
    return build_report((status,))


def _is_rejection(message: ReportMessage, notice: str) -> bool:
    texts = (*(message.header(name) for name in REJECTION_FIELDS), notice[:1_000])
    return any(patterns.REJECTED_BY_SCRIPT.search(text) for text in texts)
