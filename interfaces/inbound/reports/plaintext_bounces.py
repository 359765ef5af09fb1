"""Plaintext bounces: notices without the status fields of RFC 3464, written for people.

Exim, qmail, sendmail, Notes, Exchange, GroupWise, IMail and similar programs use the same layout: the failed address
at the start of a line, the reply of the remote host below it, then the returned message.
"""

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from interfaces.inbound.reports import patterns
from interfaces.inbound.reports.classification import find_message_reason, find_recipient_reason
from interfaces.inbound.reports.dsn import MAX_DIAGNOSTIC, NoticeFindings, build_failure_status, reply_code, status_code
from interfaces.inbound.reports.mime import ReportMessage
from interfaces.inbound.reports.report import RecipientStatus, ReportKind

MAX_LINES = 200
MAX_ADDRESSES = 50


def read_recipient_statuses(message: ReportMessage, notice: str) -> tuple[RecipientStatus, ...]:
    """Return a status for each reason that a plaintext notice gives, with its addresses.

    Nothing if the message is no notice, or names no address and is not certainly about email.
    """
    if not _is_notice(message, notice):
        return ()
    lines = _notice_lines(notice)
    kind = _kind(message, "\n".join(lines))
    sections = _sections(message, lines)
    is_about_email = any(section.recipients for section in sections) or _is_from_mailer(message)
    if not is_about_email and not patterns.REPLY.search(_diagnostic(lines)):
        return ()
    return tuple(_section_status(section, kind=kind) for section in sections)


@dataclass
class Section:
    """The lines of a notice about one or several recipients with the same reason."""

    recipients: list[str]
    lines: list[str]
    has_reason: bool = False

    def add(self, address: str, lines: list[str]) -> None:
        self.recipients = list(dict.fromkeys([*self.recipients, address]))
        self.lines += lines
        self.has_reason = self.has_reason or any(_has_code(line) or find_recipient_reason(line) for line in lines)


def _sections(message: ReportMessage, lines: list[str]) -> list[Section]:
    """Return the sections of a notice: addresses without a reason between them share the next one.

    One section with all lines for a notice about one address, or without a reason behind its addresses.
    """
    found = list(itertools.islice(_addresses_in(lines), MAX_ADDRESSES))
    ends = [number for number, _ in found[1:]] + [len(lines)]
    sections: list[Section] = []
    for (number, address), end in zip(found, ends, strict=False):
        known = next((section for section in sections if address in section.recipients), None)
        if not known and (not sections or sections[-1].has_reason):
            sections.append(Section([], []))
        (known or sections[-1]).add(address, lines[number:end])
    recipients = _recipients(message, [address for _, address in found])
    if len(sections) < 2:
        return [Section(recipients, lines)]
    named = {address for section in sections for address in section.recipients}
    others = [address for address in recipients if address not in named]
    return [*sections, Section(others, [])] if others else sections


def _section_status(section: Section, *, kind: ReportKind) -> RecipientStatus:
    diagnostic = _diagnostic(section.lines)
    return build_failure_status(
        kind=kind,
        recipients=tuple(section.recipients),
        status=status_code(diagnostic),
        code=reply_code(diagnostic),
        diagnostic=diagnostic,
        notice=NoticeFindings("\n".join(section.lines)),
    )


def add_forwarded_addresses(statuses: tuple[RecipientStatus, ...], notice: str) -> tuple[RecipientStatus, ...]:
    """Return statuses that also name the original address of each forwarded one."""
    if not patterns.FORWARDED_FROM.search(notice):
        return statuses
    originals = _original_addresses(_notice_lines(notice))
    return tuple(
        replace(status, recipients=tuple(dict.fromkeys([*status.recipients, *_originals_of(status, originals)])))
        for status in statuses
    )


def strip_returned_message(notice: str) -> str:
    """Return a notice without the returned message."""
    return "\n".join(_notice_lines(notice))


def _is_notice(message: ReportMessage, notice: str) -> bool:
    if message.header("x-failed-recipients"):
        return True
    senders = [message.header(name) for name in ("from", "return-path", "sender", "x-sender")]
    is_daemon = any(patterns.DAEMON.search(sender) for sender in senders)
    has_subject = bool(patterns.SUBJECT.search(message.header("subject")))
    has_phrase = bool(patterns.BODY.search(notice[:3_000]))
    return [is_daemon, has_subject, has_phrase].count(True) >= 2


def _is_from_mailer(message: ReportMessage) -> bool:
    """Check that a notice without an address and a code is about email: couriers fail to deliver, too."""
    return any(patterns.MAILER.search(message.header(name)) for name in ("from", "return-path", "sender"))


def _notice_lines(notice: str) -> list[str]:
    lines: list[str] = []
    for line in notice.split("\n", MAX_LINES)[:MAX_LINES]:
        if lines and patterns.RETURNED_MESSAGE.match(line[:200]):
            break
        lines.append(line.rstrip()[:500])
    return lines


def _kind(message: ReportMessage, text: str) -> ReportKind:
    """Return the kind of a notice. A warning stays one, whatever it says about the time after it."""
    subject_and_text = f"{message.header('subject')}\n{text}"
    if patterns.WARNING.search(subject_and_text):
        return ReportKind.DELAY
    is_final = patterns.FINAL.search(patterns.CONDITIONAL.sub(" ", " ".join(text.split())))
    return ReportKind.DELAY if patterns.DELAYED.search(subject_and_text) and not is_final else ReportKind.BOUNCE


def _recipients(message: ReportMessage, addresses: list[str]) -> list[str]:
    named = [word.strip(" <>") for word in message.header("x-failed-recipients").split(",") if "@" in word]
    return list(dict.fromkeys([*named, *addresses]))[:MAX_ADDRESSES]


def _addresses_in(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield the number of each line that names a failed address, with the address."""
    quoted = _quoted_headers(lines)
    for number, line in enumerate(lines):
        if "@" not in line or patterns.SENDER_FIELD.match(line) or number in quoted:
            continue
        found = (
            _leading_address(line[:400])
            or patterns.BRACKETED_ADDRESS.search(line[:400])
            or _leading_address(line[:400].rpartition(": ")[2])
        )
        if found and not patterns.ROLE_ADDRESS.match(found[1]):
            yield number, found[1].rstrip(".")


def _quoted_headers(lines: list[str]) -> set[int]:
    """Return the numbers of lines that quote the returned message's To or Cc: fields next to its other fields.

    They name the recipient always, and so do not say whose address failed (docs/decisions/0030).
    """
    fields = {number for number, line in enumerate(lines) if patterns.MESSAGE_FIELD.match(line)}
    addressed = {number for number, line in enumerate(lines) if patterns.ADDRESSED_FIELD.match(line)}
    return {number for number in addressed if fields & {number - 1, number + 1} or {number - 1} & addressed & fields}


def _original_addresses(lines: list[str]) -> dict[str, list[str]]:
    """Return original addresses by forwarded address in lower case, from the lines up to the next address."""
    originals: dict[str, list[str]] = {}
    address = ""
    for line in lines:
        if "@" not in line:
            continue
        found = _leading_address(line[:400])
        address = found[1].rstrip(".").lower() if found else address
        originals.setdefault(address, []).extend(patterns.FORWARDED_FROM.findall(line[:400]))
    return originals


def _originals_of(status: RecipientStatus, originals: dict[str, list[str]]) -> list[str]:
    addresses = (address.lower() for address in status.recipients)
    return [original for address in addresses for original in originals.get(address, ())][:MAX_ADDRESSES]


def _leading_address(line: str) -> re.Match[str] | None:
    """Return the address at the start of a line, after an optional label."""
    rest = line.strip(" \t>*•\"'-")
    for _ in range(2):
        label, colon, value = rest.partition(":")
        if colon and label.strip(" <[(").lower() in patterns.LABELS:
            rest = value.strip()
    rest = patterns.UNDELIVERABLE.sub("", rest).lstrip("<[(\"'")
    found = patterns.ADDRESS.match(rest)
    return found if found and patterns.AFTER_ADDRESS.match(rest[found.end() :]) else None


def _diagnostic(lines: list[str]) -> str:
    """Return the line that gives the reason, by code or phrase, with the two lines after it."""
    filled = [line.strip() for line in lines if line.strip()][:MAX_LINES]
    coded = [number for number, line in enumerate(filled) if _has_code(line)]
    best = [number for number in coded if find_recipient_reason(filled[number])] or coded
    found = best[0] if best else _first_with_reason(filled)
    return " ".join(filled[found : found + 3])[:MAX_DIAGNOSTIC] if found is not None else ""


def _first_with_reason(lines: list[str]) -> int | None:
    for find in (find_recipient_reason, find_message_reason):
        for number, line in enumerate(lines):
            if find(line):
                return number
    return None


def _has_code(line: str) -> bool:
    return bool(reply_code(line) or status_code(line))
