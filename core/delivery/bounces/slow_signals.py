"""Slow signals: replies by which a receiver asks for less email (docs/decisions/0278)."""

from enum import Enum

from core.delivery.bounces.classification import HOST_STAGES, SmtpStage, classify, normalized_text
from core.delivery.bounces.listings import OWN_LIST
from core.delivery.bounces.phrases import PhraseTable
from core.delivery.bounces.reasons import RECIPIENT_FAULTS, FailureReason
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply


class SlowSignal(Enum):
    """The kind of a slow signal.

    rate: too much at once; over in a minute or so.
    reputation: the sending address or domain is distrusted for hours.
    listed: a block list has the sending address.
    """

    RATE = "rate"
    REPUTATION = "reputation"
    LISTED = "listed"


CLOSING = 421
# Codes of a relay itself: RFC 4954, section 6, and Amazon SES's "454 Throttling failure"; 451 counts with x.7.x.
RELAY_CODES = (CLOSING, 454)
RELAY_POLICY = (451, "4.7.")
SIGNALS: dict[str, SlowSignal | None] = {
    FailureReason.RATE_LIMITED: SlowSignal.RATE,
    FailureReason.REPUTATION: SlowSignal.REPUTATION,
}
# Reasons that say nothing about the pace, with any code.
OTHER_CAUSES = frozenset(
    {
        FailureReason.GREYLISTED,
        FailureReason.MAILBOX_FULL,
        FailureReason.TOO_MANY_RECIPIENTS,
        FailureReason.RELAY_DENIED,
        *RECIPIENT_FAULTS,
    }
)
# The mailbox receives too much, from anybody: Google's 450 4.2.1, Exchange's 5.2.12x, Yandex, Tencent.
RECIPIENT_PACE = PhraseTable(
    (True, (
        "user you are trying to contact", "recipientratelimit", "recipient has exceeded", "recipient @ has exceeded",
        "mailbox unavailable or access denied",
    )),
)  # fmt: skip
# Words around the reply of another host, which a relay quotes: Postfix, Exim, Sendmail and Exchange.
QUOTATION = PhraseTable(
    (True, (
        " said ", "remote host", "remote server", "remote mail server", "remote mta", "in reply to", "in response to",
        "while talking to", "refused to talk to me", "upstream",
    )),
)  # fmt: skip
# A distrust that the host expresses by a rate: Google's 421 4.7.28, Microsoft's 451 4.7.650.
RATE = PhraseTable((True, ("rate limit", "unusual rate")))
# A distrust of the sender's domain, which is that of one workspace.
DOMAIN = PhraseTable((True, ("sending domain", "senders domain", "your domain", "domain reputation", "from domain")))
# The end of this connection only: a kept session met the limit, and the next one does not.
PER_CONNECTION = PhraseTable((True, ("per connection", "in this connection", "per session", "this session")))


def slow_signal(outcome: DeliveryOutcome, *, stage: SmtpStage) -> SlowSignal | None:
    """Return the signal of a recipient's mail host; None for a reply that says nothing about the pace.

    Before MAIL only a 421 and a listing count: other refusals there are failures of the connection.
    """
    if outcome.status is not DeliveryStatus.DEFERRED or outcome.reason in OTHER_CAUSES:
        return None
    if outcome.listed_by:
        return SlowSignal.RATE if outcome.listed_by == OWN_LIST else SlowSignal.LISTED
    is_closing = outcome.reply.code == CLOSING
    text = normalized_text(outcome.reply.text)
    if RECIPIENT_PACE.find(text) or (stage in HOST_STAGES and not is_closing):
        return None
    if DOMAIN.find(text):
        return SlowSignal.RATE if is_closing else None
    signal = SIGNALS.get(outcome.reason, SlowSignal.RATE if is_closing else None)
    return SlowSignal.RATE if signal and RATE.find(text) else signal


def relay_signal(outcome: DeliveryOutcome, *, stage: SmtpStage) -> SlowSignal | None:
    """Return the signal of a relay. The words of its recipients' hosts, which it may pass on, are none.

    After MAIL only the codes of a relay in trouble count, and never more than `rate`, which takes several replies.
    """
    signal = slow_signal(outcome, stage=stage)
    if stage in HOST_STAGES or stage is SmtpStage.MAIL:
        return signal
    return SlowSignal.RATE if outcome.reason not in OTHER_CAUSES and _is_of_relay(outcome) else None


def is_end_of_connection(reply: Reply) -> bool:
    """Return whether a 421 to MAIL on a kept session ends only this connection: the next one may work."""
    found = classify(reply, stage=SmtpStage.MAIL)
    is_signal = found.reason in SIGNALS or found.listed_by
    return not is_signal or bool(PER_CONNECTION.find(normalized_text(reply.text)))


def _is_of_relay(outcome: DeliveryOutcome) -> bool:
    code, prefix = RELAY_POLICY
    is_policy = outcome.reply.code == code and (outcome.reply.enhanced_code or "").startswith(prefix)
    is_own = outcome.reply.code in RELAY_CODES or is_policy
    text = normalized_text(outcome.reply.text)
    return is_own and not QUOTATION.find(text) and not RECIPIENT_PACE.find(text)
