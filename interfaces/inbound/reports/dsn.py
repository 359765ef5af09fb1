"""DSNs: RFC 3464, their UTF-8 form of RFC 6533, and common deviations."""

import functools
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from core.delivery.bounces.classification import SmtpStage
from core.delivery.bounces.reasons import FailureReason
from interfaces.inbound.reports import patterns
from interfaces.inbound.reports.classification import (
    AMBIGUOUS_NOTICES,
    BounceClassification,
    classify_bounce,
    classify_notice,
    stage_of_notice,
)
from interfaces.inbound.reports.mime import ReportMessage, read_status_fields
from interfaces.inbound.reports.report import RecipientStatus, ReportKind

MAX_GROUPS = 20
MAX_DIAGNOSTIC = 1_000
TYPES = frozenset({"message/delivery-status", "message/global-delivery-status", "text/delivery-status"})
KINDS = {
    "failed": ReportKind.BOUNCE,
    "failure": ReportKind.BOUNCE,
    "fail": ReportKind.BOUNCE,
    "error": ReportKind.BOUNCE,
    "expired": ReportKind.BOUNCE,  # SendGrid
    "delayed": ReportKind.DELAY,
    "delay": ReportKind.DELAY,
    "deferred": ReportKind.DELAY,
    "delivered": ReportKind.DELIVERED,
    # Passed to a host that sends no reports, or to a list: delivery is unconfirmed in both cases.
    "relayed": ReportKind.RELAYED,
    "expanded": ReportKind.RELAYED,
}
KINDS_BY_CLASS = {"2": ReportKind.DELIVERED, "4": ReportKind.DELAY, "5": ReportKind.BOUNCE}
ADDRESS_FIELDS = ("original-recipient", "final-recipient", "x-actual-recipient", "x-original-recipient")
RECIPIENT_FIELDS = frozenset({*ADDRESS_FIELDS, "action", "status", "diagnostic-code"})

# Does not match inside an IP address such as 192.0.2.1 or a version such as 4.72.1.2.
STATUS = re.compile(r"(?<![\d.])([245]\.\d{1,3}\.\d{1,3})(?![\d]|\.\d)")
CODE = re.compile(r"(?<![\d.])([245][0-5]\d)(?=[ \])-]|$)(?![ -]bytes)")
SPECIFIC = re.compile(r"[245]\.[1-9]\d{0,2}\.[1-9]\d{0,2}")
IN_BRACKETS = re.compile(r"<([^<>]{1,320})>")
ADDRESS = re.compile(r"[^\s@]{1,64}@[^\s@;,]{1,255}")
XTEXT = re.compile(r"\\x\{([0-9A-Fa-f]{1,6})\}|\+(2B|3D)")
RECIPIENT_LINE = re.compile(r"^(?:final|original)-recipient[ \t]*:", re.IGNORECASE | re.MULTILINE)

Group = dict[str, str]


def read_recipient_statuses(message: ReportMessage, notice: str) -> tuple[RecipientStatus, ...]:
    """Return a status for each recipient of a DSN; nothing for a message without status fields.

    notice: the human-readable text, which gives the reason where the fields give none.
    """
    read = functools.cache(NoticeFindings)
    groups = list(itertools.islice((group for text in _status_texts(message) for group in _groups(text)), MAX_GROUPS))
    named = {address.lower() for group in groups for address in _addresses(group)}
    return tuple(_recipient_status(group, read(_notice_about(group, named, notice))) for group in groups)


@dataclass(frozen=True)
class NoticeFindings:
    """A notice, or the section of it about one recipient. Read only where it is needed, and once."""

    text: str

    @cached_property
    def classification(self) -> BounceClassification:
        return classify_notice(self.text)

    @cached_property
    def stage(self) -> SmtpStage:
        return stage_of_notice(self.text)

    @cached_property
    def ambiguous_reason(self) -> FailureReason | None:
        return AMBIGUOUS_NOTICES.find(self.text.lower())

    @cached_property
    def is_warning(self) -> bool:
        return bool(patterns.WARNING.search(self.text))


def _notice_about(group: Group, named: set[str], notice: str) -> str:
    """Return the lines of a notice about one of several recipients; the whole notice if it names none of them."""
    own = {address.lower() for address in _addresses(group)}
    if named <= own or not any(address in notice.lower() for address in named):
        return notice
    lines, is_own = [], False
    for line in notice.splitlines():
        mentioned = {address.lower().rstrip(".:,") for address in patterns.ADDRESS_IN_TEXT.findall(line[:500])} & named
        is_own = bool(mentioned & own) if mentioned else is_own
        if is_own:
            lines.append(line)
    return "\n".join(lines)


def _status_texts(message: ReportMessage) -> list[str]:
    typed = [leaf.text for leaf in message.leaves if leaf.kind in TYPES]
    if typed:
        return typed
    # Some gateways change the content type of the part, or flatten the message into text.
    plain = [leaf.text for leaf in message.leaves if leaf.kind in {"text/plain", "application/octet-stream"}]
    return [patterns.RETURNED_PART.split(text, 1)[0] for text in plain if RECIPIENT_LINE.search(text)]


def _groups(text: str) -> list[Group]:
    """Return the fields of each recipient, without the per-message fields."""
    groups: list[Group] = []
    for block in re.split(r"\n[ \t]*\n", text)[: 2 * MAX_GROUPS]:
        for group in _split(block):
            if groups and _continues(groups[-1], group):
                groups[-1] |= group
            elif RECIPIENT_FIELDS & group.keys():
                groups.append(group)
    return [group for group in groups if "action" in group or "status" in group or "diagnostic-code" in group]


def _split(block: str) -> Iterator[Group]:
    """Split a block in which the empty line between two recipients is missing."""
    group: Group = {}
    for name, value in read_status_fields(block):
        if name in group and name in {"final-recipient", "original-recipient", "action"}:
            yield group
            group = {}
        group.setdefault(name, value)
    yield group


def _continues(group: Group, following: Group) -> bool:
    """Check whether an empty line has split the fields of one recipient."""
    names_address = any(name in following for name in ADDRESS_FIELDS)
    has_fields = bool(RECIPIENT_FIELDS & following.keys())
    return has_fields and not names_address and not following.keys() & group.keys() & RECIPIENT_FIELDS


def _recipient_status(group: Group, notice: NoticeFindings) -> RecipientStatus:
    diagnostic = _without_type(group.get("diagnostic-code", ""))
    status, code = _status(group.get("status", ""), diagnostic), reply_code(diagnostic)
    kind = _kind(group, status, code)
    text = f"{diagnostic} {group.get('x-powermta-bouncecategory', '')} {group.get('x-supplementary-info', '')}"
    # Some programs mark the recipients of a warning as failed.
    is_warning = kind is ReportKind.BOUNCE and status.startswith("4") and notice.is_warning
    return build_failure_status(
        kind=ReportKind.DELAY if is_warning else kind,
        recipients=tuple(dict.fromkeys(_addresses(group))),
        status=status,
        code=code,
        diagnostic=text.strip()[:MAX_DIAGNOSTIC],
        notice=notice,
    )


def build_failure_status(
    *,
    kind: ReportKind,
    recipients: tuple[str, ...],
    status: str,
    code: int,
    diagnostic: str,
    notice: NoticeFindings,
) -> RecipientStatus:
    """Return a status with its classification; the notice is classified if the diagnostic text gives no reason."""
    if kind not in {ReportKind.BOUNCE, ReportKind.DELAY}:
        return RecipientStatus(kind, recipients, status, code, diagnostic)
    bounce = classify_bounce(status=status, code=code, diagnostic=diagnostic, quoted=notice.stage)
    # Where the notice quotes a command, the reply to it has been classified.
    if bounce.reason is FailureReason.UNDETERMINED and notice.stage is SmtpStage.REPORT:
        bounce = notice.classification if bounce.is_permanent else replace(bounce, reason=notice.classification.reason)
    if bounce.is_hard and notice.ambiguous_reason:
        bounce = replace(bounce, reason=notice.ambiguous_reason, is_hard=False)
    diagnostic = diagnostic or bounce.line[:MAX_DIAGNOSTIC]
    is_permanent = bounce.is_permanent and kind is ReportKind.BOUNCE
    is_hard = bounce.is_hard and is_permanent
    return RecipientStatus(kind, recipients, status, code, diagnostic, bounce.reason, is_hard, is_permanent)


def status_code(text: str) -> str:
    """Return the first enhanced status code of a text, or ""."""
    found = STATUS.search(text)
    return found[1] if found else ""


def reply_code(text: str) -> int:
    """Return the first SMTP reply code of a text, or 0."""
    found = CODE.search(text)
    return int(found[1]) if found else 0


def _status(field: str, diagnostic: str) -> str:
    """Return the more specific code: hosts fill the field with 5.0.0 although the diagnostic text has a better one."""
    from_field, from_text = status_code(field), status_code(diagnostic)
    if SPECIFIC.fullmatch(from_text) and not (SPECIFIC.fullmatch(from_field) and from_field[0] != from_text[0]):
        return from_text
    return from_field or from_text


def _kind(group: Group, status: str, code: int) -> ReportKind:
    words = group.get("action", "").lower().split(None, 1)
    word = words[0].strip("();,.") if words else ""
    if word in KINDS:
        return KINDS[word]
    return KINDS_BY_CLASS.get(status[:1] or str(code)[:1], ReportKind.UNKNOWN)


def _addresses(group: Group) -> Iterator[str]:
    for name in ADDRESS_FIELDS:
        address = parse_address_field(group.get(name, ""))
        if address:
            yield address


def parse_address_field(field: str) -> str:
    """Return the address of `rfc822; ada@example.com`; "" for other address types such as X.400 and Notes."""
    _, semicolon, rest = field.partition(";")
    value = (rest if semicolon else field).strip()
    bracketed = IN_BRACKETS.search(value)
    plain = XTEXT.sub(_decoded, (bracketed[1] if bracketed else value).strip(" <>\"'"))
    found = ADDRESS.match(plain)
    return found[0] if found else ""


def _decoded(found: re.Match[str]) -> str:
    """Decode xtext (RFC 3461, section 4) and its UTF-8 form (RFC 6533, section 3)."""
    number = int(found[1] or found[2], 16)
    return chr(number) if 32 < number < 0x110000 and not 0xD800 <= number < 0xE000 else found[0]


def _without_type(field: str) -> str:
    kind, semicolon, rest = field.partition(";")
    return rest.strip() if semicolon and len(kind) < 40 and " " not in kind.strip() else field.strip()
