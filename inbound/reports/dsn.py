"""Delivery status notifications: RFC 3464, in UTF-8 by RFC 6533, and what is sent under that name."""

import functools
import itertools
import re
from collections.abc import Callable, Iterator

from delivery.bounces.reasons import Reason
from inbound.reports.classification import Judgement, judge, judge_notice
from inbound.reports.facts import Fact, Kind
from inbound.reports.mime import Message, unfolded

MAX_GROUPS = 20
MAX_DIAGNOSTIC = 1_000
TYPES = frozenset({"message/delivery-status", "message/global-delivery-status", "text/delivery-status"})
KINDS = {
    "failed": Kind.BOUNCE,
    "failure": Kind.BOUNCE,
    "fail": Kind.BOUNCE,
    "error": Kind.BOUNCE,
    "delayed": Kind.DELAY,
    "delay": Kind.DELAY,
    "deferred": Kind.DELAY,
    "delivered": Kind.DELIVERED,
    # Handed to where nobody reports from; to many at once: not seen to arrive, in both cases.
    "relayed": Kind.RELAYED,
    "expanded": Kind.RELAYED,
}
KINDS_BY_CLASS = {"2": Kind.DELIVERED, "4": Kind.DELAY, "5": Kind.BOUNCE}
NAMES = ("original-recipient", "final-recipient", "x-actual-recipient", "x-original-recipient")
OF_A_RECIPIENT = frozenset({*NAMES, "action", "status", "diagnostic-code"})

# Not the numbers of an address: 192.0.2.1 holds none, nor does a version such as 4.72.1.2.
STATUS = re.compile(r"(?<![\d.])([245]\.\d{1,3}\.\d{1,3})(?![\d]|\.\d)")
CODE = re.compile(r"(?<![\d.])([245][0-5]\d)(?=[ -]|$)(?![ -]bytes)")
SPECIFIC = re.compile(r"[245]\.[1-9]\d{0,2}\.[1-9]\d{0,2}")
IN_BRACKETS = re.compile(r"<([^<>]{1,320})>")
ADDRESS = re.compile(r"[^\s@]{1,64}@[^\s@;,]{1,255}")
XTEXT = re.compile(r"\\x\{([0-9A-Fa-f]{1,6})\}|\+(2B|3D)")
MACHINE_LINE = re.compile(r"^(?:final|original)-recipient[ \t]*:", re.IGNORECASE | re.MULTILINE)

Group = dict[str, str]


def facts_of(message: Message, notice: str) -> tuple[Fact, ...]:
    """Return what the message reports of each recipient; nothing when it holds no status fields.

    notice: what it says to people, asked where the fields say too little.
    """
    told = functools.cache(functools.partial(judge_notice, notice))
    groups = (group for text in _status_texts(message) for group in _groups(text))
    return tuple(_fact(group, told) for group in itertools.islice(groups, MAX_GROUPS))


def _status_texts(message: Message) -> list[str]:
    typed = [leaf.text for leaf in message.leaves if leaf.content_type in TYPES]
    if typed:
        return typed
    # Some gateways change the type of the part, or flatten the whole message.
    plain = [leaf.text for leaf in message.leaves if leaf.content_type in {"text/plain", "application/octet-stream"}]
    return [text for text in plain if MACHINE_LINE.search(text)]


def _groups(text: str) -> list[Group]:
    """Return the fields of each recipient; those of the message itself belong to none."""
    groups: list[Group] = []
    for block in re.split(r"\n[ \t]*\n", text)[: 2 * MAX_GROUPS]:
        for group in _split(block):
            if groups and _continues(groups[-1], group):
                groups[-1] |= group
            elif OF_A_RECIPIENT & group.keys():
                groups.append(group)
    return [group for group in groups if "action" in group or "status" in group or "diagnostic-code" in group]


def _split(block: str) -> Iterator[Group]:
    """Take a block apart where an empty line between two recipients is missing."""
    group: Group = {}
    for name, value in unfolded(block):
        if name in group and name in {"final-recipient", "original-recipient", "action"}:
            yield group
            group = {}
        group.setdefault(name, value)
    yield group


def _continues(group: Group, further: Group) -> bool:
    """Say whether an empty line has torn one recipient's fields apart."""
    named = any(name in further for name in NAMES)
    return bool(OF_A_RECIPIENT & further.keys()) and not named and not further.keys() & group.keys() & OF_A_RECIPIENT


def _fact(group: Group, told: Callable[[], Judgement]) -> Fact:
    diagnostic = _without_type(group.get("diagnostic-code", ""))
    status, code = _status(group.get("status", ""), diagnostic), reply_code(diagnostic)
    kind = _kind(group, status, code)
    words = f"{diagnostic} {group.get('x-powermta-bouncecategory', '')} {group.get('x-supplementary-info', '')}"
    return failure(
        kind=kind,
        recipients=tuple(dict.fromkeys(_addresses(group))),
        status=status,
        code=code,
        diagnostic=words.strip()[:MAX_DIAGNOSTIC],
        told=told,
    )


def failure(
    *,
    kind: Kind,
    recipients: tuple[str, ...],
    status: str,
    code: int,
    diagnostic: str,
    told: Callable[[], Judgement],
) -> Fact:
    """Return a fact with its judgement; where the diagnosis says nothing, with what is told beside it."""
    if kind not in {Kind.BOUNCE, Kind.DELAY}:
        return Fact(kind, recipients, status, code, diagnostic)
    judgement = judge(status=status, code=code, diagnostic=diagnostic)
    if judgement.reason is Reason.UNDETERMINED and judgement.is_permanent:
        judgement = told()
    is_permanent = judgement.is_permanent and kind is Kind.BOUNCE
    is_hard = judgement.is_hard and is_permanent
    return Fact(kind, recipients, status, code, diagnostic, judgement.reason, is_hard, is_permanent)


def status_code(text: str) -> str:
    """Return the first enhanced status code of a text, or an empty one."""
    found = STATUS.search(text)
    return found[1] if found else ""


def reply_code(text: str) -> int:
    """Return the first SMTP reply code of a text, or 0."""
    found = CODE.search(text)
    return int(found[1]) if found else 0


def _status(field: str, diagnostic: str) -> str:
    """Prefer the code that says more: hosts fill the field with 5.0.0 while the diagnosis knows better."""
    own, told = status_code(field), status_code(diagnostic)
    if SPECIFIC.fullmatch(told) and not (SPECIFIC.fullmatch(own) and own[0] != told[0]):
        return told
    return own or told


def _kind(group: Group, status: str, code: int) -> Kind:
    words = group.get("action", "").lower().split(None, 1)
    word = words[0].strip("();,.") if words else ""
    if word in KINDS:
        return KINDS[word]
    return KINDS_BY_CLASS.get(status[:1] or str(code)[:1], Kind.UNKNOWN)


def _addresses(group: Group) -> Iterator[str]:
    for name in NAMES:
        address = address_of(group.get(name, ""))
        if address:
            yield address


def address_of(field: str) -> str:
    """Return the address of `rfc822; ada@example.com`; empty for what is none, as names of X.400 and Notes."""
    _, semicolon, rest = field.partition(";")
    value = (rest if semicolon else field).strip()
    bracketed = IN_BRACKETS.search(value)
    plain = XTEXT.sub(_decoded, (bracketed[1] if bracketed else value).strip(" <>\"'"))
    found = ADDRESS.match(plain)
    return found[0] if found else ""


def _decoded(found: re.Match[str]) -> str:
    """Undo xtext (RFC 3461, section 4) and its form for UTF-8 (RFC 6533, section 3)."""
    number = int(found[1] or found[2], 16)
    return chr(number) if 32 < number < 0x110000 and not 0xD800 <= number < 0xE000 else found[0]


def _without_type(field: str) -> str:
    kind, semicolon, rest = field.partition(";")
    return rest.strip() if semicolon and len(kind) < 40 and " " not in kind.strip() else field.strip()
