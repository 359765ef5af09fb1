"""Reply classification: the delivery status and failure reason of a refusal, from its codes and phrases.

The order is that of docs/decisions/0021: the stage before MAIL, providers' own marks, the enhanced code if it agrees
with the basic code, the phrases where the codes are unspecific, the basic code, and finally the stage.
Linear in the text, of which the first 1,000 characters count.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from core.delivery.bounces.bounce_phrases import (
    CONTENT_PHRASES,
    FALLBACK_PHRASES,
    GENERAL_PHRASES,
    HOST_PHRASES,
    PROVIDER_PHRASES,
    SENDER_PHRASES,
)
from core.delivery.bounces.codes import BASIC, ENHANCED
from core.delivery.bounces.listings import find_listing
from core.delivery.bounces.phrases import PhraseTable, without_accents
from core.delivery.bounces.reasons import RECIPIENT_FAULTS, FailureReason
from core.delivery.bounces.recipient_phrases import (
    CERTAIN_PHRASES,
    DOUBT_PHRASES,
    LIKELY_PHRASES,
    MAILBOX_FULL_PHRASES,
    NEUTRAL_CLAUSES,
    POSSIBLE_RECIPIENT_PHRASES,
    TEMPORARY_PHRASES,
    UNAVAILABLE_PHRASES,
    UNCERTAIN_PHRASES,
    UNEXPLAINED_PHRASES,
)
from core.delivery.bounces.replies import MAX_LENGTH, DeliveryStatus, Reply


class SmtpStage(Enum):
    """The command that a reply answers. report: a delivery status notification received later (RFC 3464)."""

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
    """The classification of a refusal.

    is_recipient_fault: the address itself is invalid; do not retry.
    listed_by: the block list that has the sending address; empty if none.
    """

    status: DeliveryStatus
    reason: FailureReason
    is_recipient_fault: bool = False
    listed_by: str = ""


# Stages before MAIL: problems of the host or of our settings (docs/specification.md, Delivery), with default reasons.
HOST_STAGES = {
    SmtpStage.CONNECT: FailureReason.NETWORK,
    SmtpStage.BANNER: FailureReason.HOST_TROUBLE,
    SmtpStage.EHLO: FailureReason.HOST_TROUBLE,
    SmtpStage.STARTTLS: FailureReason.TLS,
    SmtpStage.AUTH: FailureReason.LOGIN_REFUSED,
}
# Reasons that are temporary even with a 5xx: RFC 5321, section 4.5.3.1.10, for the recipients; some hosts greylist and
# rate-limit with the wrong code.
TEMPORARY_REASONS = frozenset({FailureReason.TOO_MANY_RECIPIENTS, FailureReason.GREYLISTED, FailureReason.RATE_LIMITED})
# A report with one of these reasons and no 5xx of a host means that the last host gave up.
GIVE_UP_REASONS = frozenset(
    {
        FailureReason.EXPIRED,
        FailureReason.NETWORK,
        FailureReason.DNS,
        FailureReason.HOST_TROUBLE,
        FailureReason.TLS,
        *TEMPORARY_REASONS,
    }
)
# RFC 3207, section 4, and RFC 4954, section 6: the host demands TLS or a login (docs/decisions/0172).
DEMAND_CODE = 530
# The same at MAIL: a login that was revoked during the session, and the code of Exchange with any basic code.
REVOKED_CODE, EXCHANGE_DEMAND = 535, "7.57"
TLS_WORDS = ("tls", "ssl", "encrypt")
# Reasons of codes that hosts also use for unknown addresses; explicit phrases outweigh them.
OFTEN_WRONG = frozenset({FailureReason.NETWORK, FailureReason.PROTOCOL, FailureReason.HOST_TROUBLE})
# RFC 3463, x.3.x and x.6.x: the mail system and the content. No host uses these codes for unknown addresses, except
# x.3.0 and, with 521, x.3.2 (RFC 7504, a host that accepts no mail).
OTHER_SUBJECTS = ("3.", "6.")
NO_MAIL_CODE, NO_MAIL_DETAIL = 521, "3.2"
ENHANCED_CODE = re.compile(r"(?<![\w.])#?([245])\.(\d{1,3}\.\d{1,3})(?!\w|\.\d)")
IP_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")
# The heading of IronPort and of SES for any reply with 5.1.0: only the quoted reply after it counts.
HEADING = re.compile(r"unknown address error(?= \d{3})")
PUNCTUATION = re.compile(r"[^\w.@#/-]+")
# A reply of these words alone has no information beyond its code.
BARE_WORDS = frozenset(
    {"requested", "action", "not", "taken", "transaction", "failed", "error", "permanent", "failure", "no", "ok"}
)
BARE_CODES = (550, 553, 554)
# Codes with a standard meaning only when bare: relays and blocklists send them with other texts.
RELIABLE_ONLY_WHEN_BARE = (521, 551)
# The command that a report quotes with a reply: Postfix, Exim, qmail, Sendmail. RCPT is not among them, since Sendmail
# quotes DATA for the refusal of a pipelined RCPT.
QUOTED_STAGES = PhraseTable(
    (SmtpStage.MAIL, (
        "in reply to mail from", "in response to mail from", "after mail from", "after pipelined mail from",
        "but sender was rejected", "mail from 5", "mail from @ 5", "mail from @ size~ 5",
    )),
    (SmtpStage.EHLO, (
        "in reply to ehlo", "in reply to helo", "after ehlo", "after helo", "after initial connection",
        "but my name was rejected", "but greeting failed",
    )),
    (SmtpStage.DOT, (
        "in reply to end of data", "after end of data", "after pipelined end of data", "after sending data block",
        "failed after i sent the message",
    )),
)  # fmt: skip
MESSAGE_STAGES = (SmtpStage.DATA, SmtpStage.DOT)
# After RCPT: the effect of earlier replies, which alone tell whether an address is wrong.
EFFECTS = re.compile(r"\bno (?:(?:valid|correct) recipients?|recipients)\b|\brecipients are invalid\b|\bvalid rcpt\b")
# Reasons in place of a recipient fault at a stage that rules it out: the sender or the host was refused.
BLAMELESS_STAGES = {
    **dict.fromkeys(HOST_STAGES, FailureReason.HOST_TROUBLE),
    SmtpStage.MAIL: FailureReason.POLICY,
}
# Japanese carriers refuse with "User unknown" what a filter of the recipient rejects: au without the address, and NTT
# docomo after the message, for which Sendmail reports 5.2.0 (docs/decisions/0303).
AU_FILTER = re.compile(r"(?:^|\d{3}[: -]{1,2}): user unknown", re.IGNORECASE)
DOCOMO_FILTER = re.compile(r"(?:^ | 550 )unknown user @ (?:in reply to end of data command )?$")
OTHER_MAILBOX_STATUS = "2.0"
# At DATA and the dot the host has accepted the recipient's domain and address syntax.
ACCEPTED_AT_RCPT = frozenset({FailureReason.BAD_DOMAIN, FailureReason.BAD_ADDRESS, FailureReason.REJECTED})
# 552 alone: RFC 5321, section 4.5.3.1.10 at RCPT; RFC 1870, section 6 at MAIL, DATA and the dot.
STORAGE_CODE = 552
STORAGE_REASONS = {SmtpStage.RCPT: FailureReason.TOO_MANY_RECIPIENTS, SmtpStage.REPORT: FailureReason.MAILBOX_FULL}
TEMPORARY = 4
# RFC 3463, x.7.x: a security or policy refusal, unless the table of codes is more specific.
SECURITY_SUBJECT = "7."
# Exchange Online sends this for unknown users, with 5.4.1; Postfix for recipients refused by its operator, with 5.7.1.
EXCHANGE_UNKNOWN_USER = "4.1"
ACCESS_DENIED = "recipient address rejected access denied"


def classify(reply: Reply, *, stage: SmtpStage, quoted: SmtpStage = SmtpStage.REPORT) -> Classification:
    """Return the classification of a refusal (4xx, 5xx). Accepts any text and never raises.

    At REPORT the code may be 0: then the enhanced code in the text counts, and a report without one is permanent.
    quoted: the stage that a report gives outside the reply.
    """
    text = normalized_text(reply.text)
    if stage in HOST_STAGES:
        reason = _host_reason(reply, text, stage)
        return Classification(DeliveryStatus.DEFERRED, reason, listed_by=_listed_by(reason, text, stage))
    digit, detail = _enhanced_code(reply)
    is_permanent = (reply.code // 100 or digit) != TEMPORARY
    answered = QUOTED_STAGES.find(text) or quoted if stage is SmtpStage.REPORT else stage
    reason = _reason_at(answered, reply, text)
    is_revoked = stage is SmtpStage.MAIL and (reply.code == REVOKED_CODE or detail == EXCHANGE_DEMAND)
    if (reply.code == DEMAND_CODE or is_revoked) and reason not in RECIPIENT_FAULTS:
        return Classification(_temporary_status(stage), _demand(answered, text))
    # A report ends the delivery; in the dialogue, the recipient is not to blame for the list, and waits.
    listed_by = "" if stage is SmtpStage.REPORT else _listed_by(reason, text, stage)
    is_final = is_permanent and not listed_by
    status = _permanent_status(reply, reason, stage) if is_final else _temporary_status(stage)
    is_recipient_fault = status is DeliveryStatus.BOUNCED and reason in RECIPIENT_FAULTS
    return Classification(status, reason, is_recipient_fault, listed_by)


def quoted_stage(text: str) -> SmtpStage:
    """Return the stage of the command that a report quotes; REPORT if it quotes none."""
    return QUOTED_STAGES.find(normalized_text(text)) or SmtpStage.REPORT


def names_sender(text: str, *, names: Iterable[str], recipient: str) -> bool:
    """Return whether a host's text names the sender, outside links, so that it is hardly about the recipient.

    names: the domains of From and of the return path, and the EHLO name. One that the recipient's address contains
    does not count, nor does one without a dot, such as localhost.
    """
    words = " ".join(word for word in text.split() if "/" not in word)
    return any("." in name and _names_domain(words, name) and not _names_domain(recipient, name) for name in names)


def _names_domain(text: str, domain: str) -> bool:
    """Return whether a text names a domain, one of its subdomains or an address there."""
    return bool(re.search(rf"(?<![\w-]){re.escape(domain.lower())}(?![\w-]|\.\w)", text.lower()))


def normalized_text(raw: str) -> str:
    """Return a reply's text in the form of the phrase tables: see `core.delivery.bounces.bounce_phrases`."""
    lowered = (
        raw[:MAX_LENGTH].lower().replace("'", "").replace("\u2019", "").replace("e-mail", "email").replace("...", " ")
    )
    plain = without_accents(ENHANCED_CODE.sub(" ", lowered))
    words = (word.strip(".-") for word in PUNCTUATION.sub(" ", plain).split())
    return f" {' '.join(_normalized_word(word) for word in words if word)} "


def without_effects(text: str) -> str:
    """Return a normalized text without the words that only repeat an earlier reply."""
    return EFFECTS.sub(" ", HEADING.sub(" ", text))


def _normalized_word(word: str) -> str:
    if "@" in word:
        return "@"
    return "#ip#" if IP_ADDRESS.fullmatch(word) else word


def _host_reason(reply: Reply, text: str, stage: SmtpStage) -> FailureReason:
    if stage in (SmtpStage.BANNER, SmtpStage.EHLO):
        found = _first(text, PROVIDER_PHRASES, HOST_PHRASES)
        return found if found and found not in RECIPIENT_FAULTS else HOST_STAGES[stage]
    # RFC 4954, section 4.7.1: 454 is a problem of the host; the password may be correct.
    is_host_problem = stage is SmtpStage.AUTH and reply.code // 100 == 4
    return FailureReason.HOST_TROUBLE if is_host_problem else HOST_STAGES[stage]


def _listed_by(reason: FailureReason, text: str, stage: SmtpStage) -> str:
    if reason is not FailureReason.BLOCKLISTED:
        return ""
    return find_listing(text, is_greeting=stage is SmtpStage.BANNER)


def _enhanced_code(reply: Reply) -> tuple[int, str]:
    """Return the first enhanced code that agrees with the basic code, preferring one with a known reason."""
    basic = reply.code // 100
    codes = [
        (int(match[1]), match[2].lstrip("0"))
        for match in ENHANCED_CODE.finditer(reply.text[:MAX_LENGTH])
        if basic in (0, int(match[1]))
    ]
    known = (code for code in codes if code[1] in ENHANCED)
    return next(known, codes[0] if codes else (0, ""))


def _reason_at(stage: SmtpStage, reply: Reply, text: str) -> FailureReason:
    """Return the reason of the first table that matches, unless the stage rules it out."""
    cause = text if stage is SmtpStage.RCPT else without_effects(text)
    if _is_filtered(stage, reply, cause):
        return FailureReason.POLICY
    reason = _first(cause, PROVIDER_PHRASES, SENDER_PHRASES) or _by_codes_and_phrases(stage, reply, cause)
    if reason not in RECIPIENT_FAULTS:
        return reason
    is_effect = stage is not SmtpStage.RCPT and EFFECTS.search(text) and not certain_reason(cause)
    if is_effect or (stage in MESSAGE_STAGES and reason in ACCEPTED_AT_RCPT):
        return FailureReason.UNDETERMINED
    return BLAMELESS_STAGES.get(stage, reason)


def _is_filtered(stage: SmtpStage, reply: Reply, text: str) -> bool:
    """Return whether a filter of the recipient refused the message, in words about an unknown user."""
    is_after_message = stage in MESSAGE_STAGES or _enhanced_code(reply)[1] == OTHER_MAILBOX_STATUS
    is_docomo = is_after_message and DOCOMO_FILTER.search(text)
    return bool(is_docomo or AU_FILTER.search(reply.text[:MAX_LENGTH]))


def _by_codes_and_phrases(stage: SmtpStage, reply: Reply, text: str) -> FailureReason:
    _, detail = _enhanced_code(reply)
    return (
        _by_enhanced_code(detail, text, reply.code)
        or _by_phrases(detail, text, stage)
        or _by_basic_code(reply, text, stage)
    )


def recipient_reason(text: str) -> FailureReason | None:
    """Return the reason that the phrases give about the recipient, or that of a doubt phrase; None if neither."""
    certain = certain_reason(text)
    likely = None if certain else LIKELY_PHRASES.find(text)
    return certain or (likely and (_first(text, UNCERTAIN_PHRASES) or _doubt(text) or likely))


def certain_reason(text: str) -> FailureReason | None:
    """Return the reason that only the recipient can have, or that of an uncertain phrase; None if neither."""
    temporary = _first(text, MAILBOX_FULL_PHRASES, TEMPORARY_PHRASES)
    certain = temporary or CERTAIN_PHRASES.find(text)
    return temporary or (certain and (UNCERTAIN_PHRASES.find(text) or certain))


def _doubt(text: str) -> FailureReason | None:
    """Return the reason of a doubt phrase. Links are ignored: hosts link to one help page for all reasons."""
    return DOUBT_PHRASES.find(f" {' '.join(word for word in text.split() if '/' not in word)} ")


def _first(text: str, *tables: PhraseTable[FailureReason]) -> FailureReason | None:
    return next(filter(None, (table.find(text) for table in tables)), None)


def _by_enhanced_code(detail: str, text: str, code: int) -> FailureReason | None:
    """Return the reason of an enhanced code, or that of a phrase which outweighs it; None for a code without one."""
    coded = ENHANCED.get(detail)
    if coded in RECIPIENT_FAULTS:
        return _confirmed(coded, text)
    if detail == EXCHANGE_UNKNOWN_USER and ACCESS_DENIED in text:
        return FailureReason.UNKNOWN_USER
    if coded in OFTEN_WRONG and detail.startswith(OTHER_SUBJECTS) and code != NO_MAIL_CODE:
        return _first(text, HOST_PHRASES, CONTENT_PHRASES) or coded
    if code == NO_MAIL_CODE and detail == NO_MAIL_DETAIL:
        return _first(text, HOST_PHRASES, TEMPORARY_PHRASES) or FailureReason.BAD_DOMAIN
    if coded in OFTEN_WRONG:
        return HOST_PHRASES.find(text) or recipient_reason(text) or coded
    return coded and _named_better(coded, text)


def _named_better(coded: FailureReason, text: str) -> FailureReason:
    """Return the reason of a phrase that is more specific than the code, or that of the code."""
    is_size = CONTENT_PHRASES.find(text) is FailureReason.TOO_LARGE
    if coded is FailureReason.TOO_LARGE and not is_size:
        # Hosts use 5.2.3 for a full mailbox, too.
        return MAILBOX_FULL_PHRASES.find(text) or coded
    if coded is FailureReason.POLICY:
        return HOST_PHRASES.find(text) or (FailureReason.TOO_LARGE if is_size else coded)
    return coded


def _confirmed(coded: FailureReason, text: str) -> FailureReason:
    """Return a recipient fault by code, unless the phrases name another reason and none is certain."""
    temporary = _first(text, MAILBOX_FULL_PHRASES, TEMPORARY_PHRASES)
    if temporary or CERTAIN_PHRASES.find(text):
        return temporary or coded
    return _first(text, HOST_PHRASES, CONTENT_PHRASES) or _doubt(text) or coded


def _by_phrases(detail: str, text: str, stage: SmtpStage) -> FailureReason | None:
    reason = HOST_PHRASES.find(text) or _by_recipient_phrases(text, stage)
    reason = reason or _first(text, CONTENT_PHRASES, GENERAL_PHRASES)
    if reason or stage in MESSAGE_STAGES:
        return reason
    return _by_ambiguous_phrases(detail, text)


def _by_recipient_phrases(text: str, stage: SmtpStage) -> FailureReason | None:
    """Return the reason about the recipient. In a reply to the message, only certain phrases are about one."""
    if stage in MESSAGE_STAGES:
        return certain_reason(text)
    return recipient_reason(text)


def _by_ambiguous_phrases(detail: str, text: str) -> FailureReason | None:
    reason = UNAVAILABLE_PHRASES.find(text)
    if not reason and not detail.startswith(SECURITY_SUBJECT):
        reason = POSSIBLE_RECIPIENT_PHRASES.find(text) or UNEXPLAINED_PHRASES.find(_unexplained(text))
    return reason and (_doubt(text) or reason)


def _unexplained(text: str) -> str:
    """Return a text without its neutral end (clauses, links, hosts, numbers, addresses), closed by a dot."""
    for clause in NEUTRAL_CLAUSES:
        text = text.partition(clause)[0]
    words = text.split()
    while words and not words[-1].isalpha():
        words.pop()
    return f" {' '.join(words)} ."


def _by_basic_code(reply: Reply, text: str, stage: SmtpStage) -> FailureReason:
    """Return the reason by the basic code and the stage."""
    is_bare = BARE_WORDS.issuperset(text.split())
    if stage is SmtpStage.RCPT and reply.code in BARE_CODES and is_bare:
        return FailureReason.REJECTED
    if not is_bare and (found := FALLBACK_PHRASES.find(text)):
        return found
    if reply.code == STORAGE_CODE:
        return STORAGE_REASONS.get(stage, FailureReason.TOO_LARGE)
    is_reliable = is_bare or reply.code not in RELIABLE_ONLY_WHEN_BARE
    return BASIC.get(reply.code, FailureReason.UNDETERMINED) if is_reliable else FailureReason.UNDETERMINED


def _permanent_status(reply: Reply, reason: FailureReason, stage: SmtpStage) -> DeliveryStatus:
    if stage is SmtpStage.REPORT:
        # SES and Exchange report expired messages with 550.
        has_given_up = reason is FailureReason.EXPIRED or (not reply.code and reason in GIVE_UP_REASONS)
        return DeliveryStatus.FAILED if has_given_up else DeliveryStatus.BOUNCED
    return DeliveryStatus.DEFERRED if reason in TEMPORARY_REASONS else DeliveryStatus.BOUNCED


def _demand(stage: SmtpStage, text: str) -> FailureReason:
    """Return the reason of a 530. At MAIL it is about the session; later about relaying to the recipient's domain."""
    if stage is not SmtpStage.MAIL:
        return FailureReason.RELAY_DENIED
    return FailureReason.TLS if any(word in text for word in TLS_WORDS) else FailureReason.LOGIN_REFUSED


def _temporary_status(stage: SmtpStage) -> DeliveryStatus:
    """Return the status of a 4xx: deferred, or failed in a report, since a host has given up retrying."""
    return DeliveryStatus.FAILED if stage is SmtpStage.REPORT else DeliveryStatus.DEFERRED
