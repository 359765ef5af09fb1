"""Complaints: RFC 5965, and the feedback that large hosts send in forms of their own."""

import re
from collections.abc import Iterator

from inbound.reports.dsn import address_of
from inbound.reports.facts import Fact, Kind, Report
from inbound.reports.mime import Message, Part, read_message, unfolded

# A virus, a failed authentication or a message that is not-spam is nobody's wish to hear no more.
KINDS = {"abuse": Kind.COMPLAINT, "fraud": Kind.COMPLAINT, "opt-out": Kind.OPT_OUT, "opt-out-list": Kind.OPT_OUT}
ENCLOSED = frozenset(
    {"message/rfc822", "text/rfc822-headers", "message/rfc822-headers", "message/global", "text/rfc822"}
)
# Feedback without a feedback-report part: Outlook's and the older AOL's.
SUBJECT = re.compile(r"^\s*(complaint about message from|email feedback report for ip)", re.IGNORECASE)
IN_BRACKETS = re.compile(r"<([^<>\s]{3,320})>")
RECIPIENTS = ("original-rcpt-to", "removal-recipient")


def read_complaint(message: Message) -> Report | None:
    """Return the complaint that a message is, None when it is none."""
    part = next((leaf for leaf in message.leaves if leaf.content_type == "message/feedback-report"), None)
    if part:
        return _report(message, list(unfolded(part.text.strip("\n"))))
    if SUBJECT.search(message.header("subject")):
        return _report(message, [("feedback-type", "abuse")])
    return None


def _report(message: Message, fields: list[tuple[str, str]]) -> Report:
    types = [value.split(";")[0].strip().lower() for name, value in fields if name == "feedback-type"]
    kind = KINDS.get(types[0] if types else "", Kind.UNKNOWN)
    named = (address_of(value) for name, value in fields if name in RECIPIENTS)
    fact = Fact(kind, tuple(dict.fromkeys(address for address in named if address)))
    return Report(kind, (fact,), tuple(dict.fromkeys(_references(message, fields))))


def _references(message: Message, fields: list[tuple[str, str]]) -> Iterator[str]:
    """Yield what may name one of our copies: its return path, else its Message-ID. Hosts black out the rest."""
    yield from (address_of(value) for name, value in fields if name == "original-mail-from" and address_of(value))
    for leaf in message.leaves:
        if leaf.content_type in ENCLOSED:
            yield from _of_copy(leaf)


def _of_copy(leaf: Part) -> Iterator[str]:
    copy = read_message(leaf.content)
    for name in ("return-path", "message-id"):
        for value in copy.headers.get(name, ()):
            found = IN_BRACKETS.search(value)
            yield found[1] if found else value.strip()[:320]
