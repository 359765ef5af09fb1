"""Read a report that anybody may have sent: the one door to this room's readers.

Pure and bounded: `read_report` takes any bytes, never raises, and stays far below 50 ms (docs/decisions/0030).
"""

import logging

from inbound.reports import dsn, plaintext_bounces
from inbound.reports.arf import read_complaint
from inbound.reports.auto_replies import is_automatic
from inbound.reports.facts import Kind, Report, report_of
from inbound.reports.mime import Message, read_message
from inbound.reports.patterns import DAEMON

log = logging.getLogger("postrider.inbound")

MAX_NOTICE = 12 * 1024
MAX_TEXTS = 3


def read_report(raw: bytes) -> Report:
    """Return what a message to a return path reports; of what cannot be read, that it is unknown."""
    try:
        return _read(read_message(raw))
    # What the world sends finds new ways to surprise; the row stays, and the log names the line at fault.
    except Exception:
        log.exception("a report could not be read")
        return Report(Kind.UNKNOWN)


def _read(message: Message) -> Report:
    complaint = read_complaint(message)
    if complaint:
        return complaint
    notice = _notice(message)
    # Reports carry the marks of automatic answers, so that nobody answers them: status fields are asked first.
    facts = dsn.facts_of(message, plaintext_bounces.own_words(notice))
    if facts:
        return report_of(plaintext_bounces.with_origins(facts, notice))
    if is_automatic(message) and not _is_from_daemon(message):
        return Report(Kind.AUTO_REPLY)
    return report_of(plaintext_bounces.with_origins(plaintext_bounces.facts_of(message, notice), notice))


def _notice(message: Message) -> str:
    """Return what the message says to people: its first texts, of HTML when there is nothing else."""
    for kind in ("text/plain", "text/html"):
        texts = [leaf.text for leaf in message.leaves[:10] if leaf.content_type == kind]
        if any(text.strip() for text in texts):
            return "\n".join(texts[:MAX_TEXTS])[:MAX_NOTICE]
    return ""


def _is_from_daemon(message: Message) -> bool:
    return bool(message.header("x-failed-recipients") or DAEMON.search(message.header("from")))
