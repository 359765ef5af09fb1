"""What a reply means for the message and for the address: one procedure over the tables beside it.

The order is that of docs/decisions/0021: where it was said, providers' own marks, the enhanced code where it
agrees with the basic one, the words where the codes say little, the basic code, and at last the stage.
Linear in the text, of which the first 1,000 characters count.
"""

import re
from dataclasses import dataclass
from enum import Enum

from delivery.bounces.bounce_phrases import CIRCUMSTANCES, LEFTOVERS, OF_CONTENTS, OF_HOSTS, OF_SENDERS, PROVIDERS
from delivery.bounces.codes import BASIC, ENHANCED
from delivery.bounces.phrases import Phrases
from delivery.bounces.reasons import RECIPIENT_FAULTS, Reason
from delivery.bounces.recipient_phrases import (
    CERTAIN,
    DOUBTS,
    LIKELY,
    MAYBE_OF_RECIPIENTS,
    OF_MAILBOXES,
    OF_WAITING,
    UNAVAILABLE,
)
from delivery.bounces.replies import MAX_LENGTH, DeliveryStatus, Reply


class Stage(Enum):
    """What the host answered to. report: a delivery status notification that came later (RFC 3464)."""

    CONNECT = "connect"
    BANNER = "banner"
    EHLO = "ehlo"
    STARTTLS = "starttls"
    AUTH = "auth"
    MAIL = "mail"
    RCPT = "rcpt"
    DATA = "data"
    DOT = "dot"
    REPORT = "report"


@dataclass(frozen=True)
class Classification:
    """is_recipient_fault: the address itself is bad, so it need not be tried again."""

    verdict: DeliveryStatus
    reason: Reason
    is_recipient_fault: bool = False


# Trouble of the host or of our settings (CONTRACT section 4); by stage, when the words say nothing.
HOST_STAGES = {
    Stage.CONNECT: Reason.NETWORK,
    Stage.BANNER: Reason.HOST_TROUBLE,
    Stage.EHLO: Reason.HOST_TROUBLE,
    Stage.STARTTLS: Reason.TLS,
    Stage.AUTH: Reason.LOGIN_REFUSED,
}
# A 5xx that passes: RFC 5321, section 4.5.3.1.10 for the recipients; hosts that greylist and limit with the wrong code.
PASSING = frozenset({Reason.TOO_MANY_RECIPIENTS, Reason.GREYLISTED, Reason.RATE_LIMITED})
# A report of these, without a host's own 5xx, says that the last host on the way gave up.
GIVEN_UP = frozenset({Reason.EXPIRED, Reason.NETWORK, Reason.DNS, Reason.HOST_TROUBLE, Reason.TLS, *PASSING})
# Codes that hosts also use for addresses that they do not know; explicit words outweigh them.
OFTEN_WRONG = frozenset({Reason.NETWORK, Reason.PROTOCOL, Reason.HOST_TROUBLE})
ENHANCED_CODE = re.compile(r"(?<![\w.])#?([245])\.(\d{1,3}\.\d{1,3})(?!\w|\.\d)")
MARKS = re.compile(r"[^\w.@#/-]+")
# A reply of these words alone says nothing but its code.
BARE_WORDS = frozenset(
    {"requested", "action", "not", "taken", "transaction", "failed", "error", "permanent", "failure", "no", "ok"}
)
BARE_CODES = (550, 553, 554)
# What these mean by themselves is not what hosts say with them: relays and blocklists answer so, too.
MEANT_WHEN_BARE = (521, 551)
# Postfix's words in a report.
TO_THE_MESSAGE = "in reply to end of data"
# 552 alone: RFC 5321, section 4.5.3.1.10 at RCPT; RFC 1870, section 6 at MAIL, DATA and the dot.
FULL_CODE = 552
FULL = {Stage.RCPT: Reason.TOO_MANY_RECIPIENTS, Stage.REPORT: Reason.MAILBOX_FULL}
TEMPORARY = 4
# RFC 3463, x.7.x: somebody may not, unless the table of codes knows more.
SECURITY = "7."
# Exchange Online answers so for nobody, with 5.4.1; Postfix for whom its operator refuses, with 5.7.1.
NOBODY_AT_EXCHANGE = "4.1"
ACCESS_DENIED = "recipient address rejected access denied"


def classify(reply: Reply, *, stage: Stage) -> Classification:
    """Say what a refusal (4xx, 5xx) means. Raises nothing, whatever the text.

    At REPORT the code may be 0: then the enhanced code in the text counts, and a report without one is a refusal.
    """
    text = plain_text(reply.text)
    if stage in HOST_STAGES:
        return Classification(DeliveryStatus.DEFERRED, _host_reason(reply, text, stage))
    digit, _ = _enhanced_code(reply)
    is_permanent = (reply.code // 100 or digit) != TEMPORARY
    reason = _reason(reply, text, stage)
    verdict = _verdict(reply, reason, stage) if is_permanent else _passing(stage)
    is_fault = verdict is DeliveryStatus.BOUNCED and stage is not Stage.MAIL and reason in RECIPIENT_FAULTS
    return Classification(verdict, reason, is_fault)


def plain_text(raw: str) -> str:
    """Return the words of a reply as the phrases have them: see `delivery.bounces.bounce_phrases`."""
    lowered = (
        raw[:MAX_LENGTH].lower().replace("'", "").replace("\u2019", "").replace("e-mail", "email").replace("...", " ")
    )
    words = (word.strip(".-") for word in MARKS.sub(" ", ENHANCED_CODE.sub(" ", lowered)).split())
    return f" {' '.join('@' if '@' in word else word for word in words if word)} "


def _host_reason(reply: Reply, text: str, stage: Stage) -> Reason:
    if stage in (Stage.BANNER, Stage.EHLO):
        return OF_HOSTS.find(text) or HOST_STAGES[stage]
    # RFC 4954, section 4.7.1: 454 is the host's trouble, the password may be right.
    is_trouble = stage is Stage.AUTH and reply.code // 100 == 4
    return Reason.HOST_TROUBLE if is_trouble else HOST_STAGES[stage]


def _enhanced_code(reply: Reply) -> tuple[int, str]:
    """Return the first enhanced code that agrees with the basic one, one that says something if there is one."""
    wanted = reply.code // 100
    found = [
        (int(match[1]), match[2].lstrip("0"))
        for match in ENHANCED_CODE.finditer(reply.text[:MAX_LENGTH])
        if wanted in (0, int(match[1]))
    ]
    telling = (code for code in found if code[1] in ENHANCED)
    return next(telling, found[0] if found else (0, ""))


def _reason(reply: Reply, text: str, stage: Stage) -> Reason:
    """Ask one table after another; the first that knows has the word."""
    _, detail = _enhanced_code(reply)
    return (
        PROVIDERS.find(text)
        or OF_SENDERS.find(text)
        or _by_enhanced_code(detail, text)
        or _by_words(detail, text, stage)
        or _by_basic_code(reply, text, stage)
    )


def blame(text: str) -> Reason | None:
    """Return what the words say of the recipient, or what they say that casts doubt on it."""
    told = _first(text, OF_MAILBOXES, OF_WAITING, CERTAIN)
    likely = None if told else LIKELY.find(text)
    return told or (likely and (_doubt(text) or likely))


def _doubt(text: str) -> Reason | None:
    """Return what casts doubt on a blame; the words of a link do not: hosts keep all their help in one place."""
    return DOUBTS.find(f" {' '.join(word for word in text.split() if '/' not in word)} ")


def _first(text: str, *tables: Phrases) -> Reason | None:
    return next(filter(None, (table.find(text) for table in tables)), None)


def _by_enhanced_code(detail: str, text: str) -> Reason | None:
    coded = ENHANCED.get(detail)
    if coded in RECIPIENT_FAULTS:
        return _confirmed(coded, text)
    if detail == NOBODY_AT_EXCHANGE and ACCESS_DENIED in text:
        return Reason.UNKNOWN_USER
    if coded in OFTEN_WRONG:
        return OF_HOSTS.find(text) or blame(text) or coded
    return (coded and (OF_HOSTS.find(text) if coded is Reason.POLICY else None)) or coded


def _confirmed(coded: Reason, text: str) -> Reason:
    """Believe a code that blames the recipient, unless the words say something else and nothing certain of him."""
    told = _first(text, OF_MAILBOXES, OF_WAITING)
    if told or CERTAIN.find(text):
        return told or coded
    return _first(text, OF_HOSTS, OF_CONTENTS) or _doubt(text) or coded


def _by_words(detail: str, text: str, stage: Stage) -> Reason | None:
    told = OF_HOSTS.find(text) or blame(text) or _first(text, OF_CONTENTS, CIRCUMSTANCES)
    is_of_the_message = stage in (Stage.DATA, Stage.DOT) or TO_THE_MESSAGE in text
    if told or is_of_the_message:
        return told
    return UNAVAILABLE.find(text) or (None if detail.startswith(SECURITY) else MAYBE_OF_RECIPIENTS.find(text))


def _by_basic_code(reply: Reply, text: str, stage: Stage) -> Reason:
    """Judge by the basic code, and by who it answers."""
    is_bare = BARE_WORDS.issuperset(text.split())
    if stage is Stage.RCPT and reply.code in BARE_CODES and is_bare:
        return Reason.REJECTED
    if not is_bare and (found := LEFTOVERS.find(text)):
        return found
    if reply.code == FULL_CODE:
        return FULL.get(stage, Reason.TOO_LARGE)
    is_meant = is_bare or reply.code not in MEANT_WHEN_BARE
    return BASIC.get(reply.code, Reason.UNDETERMINED) if is_meant else Reason.UNDETERMINED


def _verdict(reply: Reply, reason: Reason, stage: Stage) -> DeliveryStatus:
    if stage is Stage.REPORT:
        return DeliveryStatus.FAILED if not reply.code and reason in GIVEN_UP else DeliveryStatus.BOUNCED
    return DeliveryStatus.DEFERRED if reason in PASSING else DeliveryStatus.BOUNCED


def _passing(stage: Stage) -> DeliveryStatus:
    """A 4xx is tried again; in a report it was, until somebody gave up."""
    return DeliveryStatus.FAILED if stage is Stage.REPORT else DeliveryStatus.DEFERRED
