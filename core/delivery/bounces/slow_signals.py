"""Slow signals: replies by which a receiver asks for less email, for the pauses of a destination.

The signals of `core.delivery.bounces.signals`, in three kinds (docs/decisions/0278).
"""

from enum import Enum

from core.delivery.bounces.classification import SmtpStage, normalized_text
from core.delivery.bounces.phrases import PhraseTable
from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import DeliveryOutcome
from core.delivery.bounces.signals import CLOSING, SignalKind, is_end_of_connection, signal_of

__all__ = ["CLOSING", "SlowSignal", "is_end_of_connection", "relay_signal", "slow_signal"]


class SlowSignal(Enum):
    """The kind of a slow signal.

    rate: too much at once; over in a minute or so.
    reputation: the sending address or domain is distrusted for hours.
    listed: a block list has the sending address.
    """

    RATE = "rate"
    REPUTATION = "reputation"
    LISTED = "listed"


# A distrust that the host expresses by a rate: Google's 421 4.7.28, Microsoft's 451 4.7.650.
RATE = PhraseTable((True, ("rate limit", "unusual rate")))


def slow_signal(outcome: DeliveryOutcome, *, stage: SmtpStage) -> SlowSignal | None:
    """Return the signal of a recipient's mail host; None for a reply that says nothing about the pace."""
    return _kind_of(outcome, signal_of(outcome, stage=stage).kind)


def relay_signal(outcome: DeliveryOutcome, *, stage: SmtpStage) -> SlowSignal | None:
    """Return the signal of a relay. The words of its recipients' hosts, which it may pass on, are none."""
    return _kind_of(outcome, signal_of(outcome, stage=stage, is_relay=True).kind)


def _kind_of(outcome: DeliveryOutcome, kind: SignalKind) -> SlowSignal | None:
    if kind is SignalKind.NONE:
        return None
    if kind is SignalKind.LISTED:
        return SlowSignal.LISTED
    is_distrust = kind is SignalKind.SUSPEND and outcome.reason == FailureReason.REPUTATION
    is_rate = RATE.find(normalized_text(outcome.reply.text))
    return SlowSignal.REPUTATION if is_distrust and not is_rate else SlowSignal.RATE
