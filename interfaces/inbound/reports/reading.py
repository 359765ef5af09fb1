"""Report reading: one entry point for all report formats.

Pure and bounded: `read_report` accepts any bytes, never raises, and takes far less than 50 ms (docs/decisions/0030).
"""

import logging

from interfaces.inbound.reports import dsn, plaintext_bounces
from interfaces.inbound.reports.arf import read_complaint
from interfaces.inbound.reports.mdn import read_disposition
from interfaces.inbound.reports.mime import ReportMessage, read_message
from interfaces.inbound.reports.patterns import (
    ANSWER_SUBJECT,
    AUTO_REPLY_HEADERS,
    AUTO_REPLY_SUBJECT,
    AUTO_REPLY_TEXT,
    DAEMON,
    OPERATOR_SUBJECT,
    REPORT_TYPE,
)
from interfaces.inbound.reports.report import Report, ReportKind, build_report

log = logging.getLogger("postrider.inbound")

MAX_NOTICE = 12 * 1024
MAX_TEXTS = 3
# RFC 2369, RFC 2919: of newsletters and lists, never of notices.
LIST_HEADERS = ("list-unsubscribe", "list-id")


def read_report(raw: bytes) -> Report:
    """Return the report in a message; of unknown kind if the message cannot be read."""
    try:
        return _read(read_message(raw))
    # Input from the internet can break a parser in unforeseen ways. The row is kept, and the log has the traceback.
    except Exception:
        log.exception("a report could not be read")
        return Report(ReportKind.UNKNOWN)


def _read(message: ReportMessage) -> Report:
    complaint = read_complaint(message)
    if complaint:
        return complaint
    notice = _notice(message)
    text = plaintext_bounces.strip_returned_message(notice)
    disposition = read_disposition(message, text)
    if disposition:
        return disposition
    ordinary = _ordinary_kind(message, text)
    if ordinary is not None:
        return Report(ordinary)
    if OPERATOR_SUBJECT.search(message.header("subject")[:300]):
        return Report(ReportKind.UNKNOWN)
    statuses = dsn.read_recipient_statuses(message, text)
    if statuses:
        return build_report(plaintext_bounces.add_forwarded_addresses(statuses, notice))
    statuses = plaintext_bounces.read_recipient_statuses(message, notice)
    return build_report(plaintext_bounces.add_forwarded_addresses(statuses, notice))


def _notice(message: ReportMessage) -> str:
    """Return the human-readable text of a message: its first plain texts, or HTML texts if there are none."""
    for kind in ("text/plain", "text/html"):
        texts = [leaf.text for leaf in message.leaves[:10] if leaf.kind == kind]
        if any(text.strip() for text in texts):
            return "\n".join(texts[:MAX_TEXTS])[:MAX_NOTICE]
    return ""


def _ordinary_kind(message: ReportMessage, notice: str) -> ReportKind | None:
    """Return the kind of automatic replies, newsletters, and answers that quote, forward or enclose a notice.

    None for a message that may be a notice itself.
    """
    if _is_from_daemon(message) or REPORT_TYPE.search(message.header("content-type")):
        return None
    if _is_auto_reply(message, notice):
        return ReportKind.AUTO_REPLY
    is_mailing = any(message.header(name) for name in LIST_HEADERS)
    return ReportKind.UNKNOWN if is_mailing or ANSWER_SUBJECT.search(message.header("subject")[:300]) else None


def _is_auto_reply(message: ReportMessage, notice: str) -> bool:
    """Check for vacation notes and challenges, which carry no delivery status."""
    is_marked = any(pattern.search(message.header(name)) for name, pattern in AUTO_REPLY_HEADERS)
    has_subject = bool(AUTO_REPLY_SUBJECT.search(message.header("subject")[:300]))
    return is_marked or has_subject or bool(AUTO_REPLY_TEXT.search(" ".join(notice.split())))


def _is_from_daemon(message: ReportMessage) -> bool:
    return bool(message.header("x-failed-recipients") or DAEMON.search(message.header("from")))
