"""Signals: what a refusal says about the pace of one source address at one receiver (docs/decisions/0346).

The table is `signals.yaml`. A reply is text of a stranger: it can slow only what is sent to its own receiver, and is
read in linear time.
"""

import functools
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import yaml

from core.delivery.bounces.classification import HOST_STAGES, SmtpStage, classify, normalized_text
from core.delivery.bounces.listings import OWN_LIST
from core.delivery.bounces.phrases import PhraseTable
from core.delivery.bounces.reasons import RECIPIENT_FAULTS, FailureReason
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply
from core.delivery.receivers_file import Loader


class SignalKind(Enum):
    """What a signal asks for.

    slow: fewer messages a minute.
    narrow: one connection fewer; the rate stays.
    suspend: nothing for a time.
    listed: nothing for a time, because a block list has the source address.
    """

    NONE = "none"
    SLOW = "slow"
    NARROW = "narrow"
    SUSPEND = "suspend"
    LISTED = "listed"


@dataclass(frozen=True)
class Signal:
    """seconds: the time of a suspension, which begins with the `after`-th such reply in an hour; earlier ones slow."""

    kind: SignalKind
    seconds: float = 0.0
    after: int = 1


NO_SIGNAL = Signal(SignalKind.NONE)
SLOW = Signal(SignalKind.SLOW)
NARROW = Signal(SignalKind.NARROW)
# Removals from a list take hours; the source may be tried again before.
LISTED = Signal(SignalKind.LISTED, seconds=7200.0)
TABLE = Path(__file__).with_name("signals.yaml")
CLOSING = 421
# Codes of a relay itself: RFC 4954, section 6, and Amazon SES's "454 Throttling failure"; 451 counts with x.7.x.
RELAY_CODES = (CLOSING, 454)
RELAY_POLICY = (451, "4.7.")
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
# Words around the reply of another host, which a relay quotes: Postfix, Exim, Sendmail and Exchange.
QUOTATION = PhraseTable(
    (True, (
        " said ", "remote host", "remote server", "remote mail server", "remote mta", "in reply to", "in response to",
        "while talking to", "refused to talk to me", "upstream",
    )),
)  # fmt: skip


# The end of this connection only: a kept session met the limit, and the next one does not.
PER_CONNECTION = PhraseTable((True, ("per connection", "in this connection", "per session", "this session")))


@dataclass(frozen=True)
class SignalRow:
    """A row of the table; an empty condition is none."""

    signal: Signal
    texts: PhraseTable[bool] | None
    codes: frozenset[int]
    receivers: frozenset[str]
    reasons: frozenset[str]

    def applies(self, outcome: DeliveryOutcome, text: str, receiver: str) -> bool:
        """Return whether the row decides about a reply. text: normalized."""
        code = outcome.reply.code
        if outcome.status is DeliveryStatus.BOUNCED and code not in self.codes:
            return False
        return (
            (not self.codes or code in self.codes)
            and (not self.receivers or receiver in self.receivers)
            and (not self.reasons or outcome.reason in self.reasons)
            and (not self.texts or bool(self.texts.find(text)))
        )


def signal_of(outcome: DeliveryOutcome, *, stage: SmtpStage, receiver: str = "", is_relay: bool = False) -> Signal:
    """Return the signal of a refusal.

    receiver: the key of the receiver; empty if it is not known.
    is_relay: the host is a relay, which may pass on the words of its recipients' hosts: after MAIL only the codes of a
    relay in trouble count, and never suspend.
    """
    is_before_mail = stage in HOST_STAGES
    if outcome.reason in OTHER_CAUSES or not outcome.reply.code:
        return NO_SIGNAL
    if is_relay and not is_before_mail and stage is not SmtpStage.MAIL:
        return SLOW if outcome.status is DeliveryStatus.DEFERRED and _is_of_relay(outcome) else NO_SIGNAL
    if outcome.listed_by:
        return SLOW if outcome.listed_by == OWN_LIST else LISTED
    # Other refusals before MAIL are failures of the connection.
    is_closing = outcome.reply.code == CLOSING
    found = _find_row(outcome, receiver) if is_closing or not is_before_mail else None
    return found or ((NARROW if is_before_mail else SLOW) if is_closing else NO_SIGNAL)


def _find_row(outcome: DeliveryOutcome, receiver: str) -> Signal | None:
    text = normalized_text(outcome.reply.text)
    return next((row.signal for row in signal_rows() if row.applies(outcome, text, receiver)), None)


def is_end_of_connection(reply: Reply) -> bool:
    """Return whether a 421 to MAIL on a kept session ends only this connection: the next one may work."""
    found = classify(reply, stage=SmtpStage.MAIL)
    is_signal = found.reason in (FailureReason.RATE_LIMITED, FailureReason.REPUTATION) or found.listed_by
    return not is_signal or bool(PER_CONNECTION.find(normalized_text(reply.text)))


@functools.cache
def signal_rows() -> tuple[SignalRow, ...]:
    """Return the rows of the table."""
    entries = yaml.load(TABLE.read_bytes(), Loader)  # noqa: S506 - both are safe loaders
    return tuple(
        SignalRow(
            Signal(SignalKind(entry["action"]), float(entry.get("seconds", 0)), entry.get("after", 1)),
            texts=PhraseTable((True, tuple(entry["texts"]))) if "texts" in entry else None,
            codes=frozenset(entry.get("codes", ())),
            receivers=frozenset(entry.get("receivers", ())),
            reasons=frozenset(entry.get("reasons", ())),
        )
        for entry in entries
    )


def is_about_recipients_pace(text: str) -> bool:
    """Return whether a reply says that the mailbox receives too much, from anybody. text: normalized."""
    first = signal_rows()[0].texts
    return bool(first and first.find(text))


def _is_of_relay(outcome: DeliveryOutcome) -> bool:
    code, prefix = RELAY_POLICY
    is_policy = outcome.reply.code == code and (outcome.reply.enhanced_code or "").startswith(prefix)
    is_own = outcome.reply.code in RELAY_CODES or is_policy
    text = normalized_text(outcome.reply.text)
    return is_own and not QUOTATION.find(text) and not is_about_recipients_pace(text)
