"""ARF reports (RFC 5965), and the proprietary complaint formats of large hosts."""

import re
from collections.abc import Iterator

from interfaces.inbound.reports.dsn import parse_address_field
from interfaces.inbound.reports.mime import ReportMessage, read_message, read_status_fields
from interfaces.inbound.reports.report import RecipientStatus, Report, ReportKind

# Other feedback types (virus, auth-failure, not-spam) are no complaint by the recipient.
KINDS = {
    "abuse": ReportKind.COMPLAINT,
    "fraud": ReportKind.COMPLAINT,
    "opt-out": ReportKind.OPT_OUT,
    "opt-out-list": ReportKind.OPT_OUT,
}
RETURNED_TYPES = frozenset(
    {"message/rfc822", "text/rfc822-headers", "message/rfc822-headers", "message/global", "text/rfc822"}
)
COMPLETE_TYPES = frozenset({"message/rfc822", "message/global"})
# Complaints without a feedback-report part: Outlook and older AOL.
SUBJECT = re.compile(r"^\s*(complaint about message from|email feedback report for ip)", re.IGNORECASE)
IN_BRACKETS = re.compile(r"<([^<>\s]{3,320})>")
RECIPIENTS = ("original-rcpt-to", "removal-recipient")


def read_complaint(message: ReportMessage) -> Report | None:
    """Return the complaint in a message, None if there is none."""
    part = next((leaf for leaf in message.leaves if leaf.kind == "message/feedback-report"), None)
    if part:
        return _report(message, list(read_status_fields(part.text.strip("\n"))))
    if SUBJECT.search(message.header("subject")):
        return _report(message, [("feedback-type", "abuse")])
    return None


def _report(message: ReportMessage, fields: list[tuple[str, str]]) -> Report:
    types = [value.split(";")[0].strip().lower() for name, value in fields if name == "feedback-type"]
    kind = KINDS.get(types[0] if types else "", ReportKind.UNKNOWN)
    named = (parse_address_field(value) for name, value in fields if name in RECIPIENTS)
    status = RecipientStatus(kind, tuple(dict.fromkeys(address for address in named if address)))
    return_paths = tuple(dict.fromkeys(_return_paths(message, fields)))
    return Report(kind, (status,), return_paths, tuple(_enclosed_messages(message)))


def _return_paths(message: ReportMessage, fields: list[tuple[str, str]]) -> Iterator[str]:
    """Yield the return paths that may identify the recipient. Hosts redact other fields."""
    yield from (
        parse_address_field(value)
        for name, value in fields
        if name == "original-mail-from" and parse_address_field(value)
    )
    for leaf in message.leaves:
        if leaf.kind in RETURNED_TYPES:
            for value in read_message(leaf.content).headers("return-path"):
                found = IN_BRACKETS.search(value)
                yield found[1] if found else value.strip()[:320]


def _enclosed_messages(message: ReportMessage) -> Iterator[bytes]:
    """Yield the enclosed messages that are complete, so that their signature can be verified."""
    for leaf in message.leaves:
        if leaf.kind in COMPLETE_TYPES:
            yield leaf.content.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n") + b"\r\n"
