"""What stops a hand-over on its way, and what that means for the message."""

from delivery.bounces.classification import Stage, classify
from delivery.bounces.reasons import Reason
from delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply, safe_text

BEFORE_MAIL = frozenset({Stage.CONNECT, Stage.BANNER, Stage.EHLO, Stage.STARTTLS, Stage.AUTH})
BEFORE_DATA = BEFORE_MAIL | {Stage.MAIL, Stage.RCPT}
CLOSING = 421


class SmtpError(Exception):
    """A host refused, or its connection failed.

    stage: what was being done. reply: the host's refusal, code 0 when the connection failed.
    reason: of a failed connection; a refusal is classified.
    """

    def __init__(self, stage: Stage, reply: Reply, reason: Reason = Reason.NETWORK) -> None:
        super().__init__(reply.text)
        self.stage = stage
        self.reply = reply
        self.reason = reason

    @property
    def is_of_the_connection(self) -> bool:
        """Tell whether it says something of the host, not of the message."""
        return self.stage in BEFORE_MAIL or not self.reply.code

    @property
    def may_try_next_host(self) -> bool:
        """Tell whether another host may be asked in the same attempt (F21): never after DATA began."""
        return self.is_of_the_connection and self.stage in BEFORE_DATA

    @property
    def is_stale(self) -> bool:
        """Tell whether a kept connection had just been closed by the host: the message was not looked at."""
        return self.stage is Stage.MAIL and self.reply.code in (0, CLOSING)

    def outcome(self) -> DeliveryOutcome:
        if self.reply.code:
            found = classify(self.reply, stage=self.stage)
            return DeliveryOutcome(
                found.verdict,
                self.reply,
                found.reason,
                is_recipient_fault=found.is_recipient_fault,
                # Another host, or this one after an update, may take the address.
                never_suppresses=found.reason is Reason.SMTPUTF8_REQUIRED,
            )
        # Whole and without an answer: the host may have it.
        is_unknown = self.stage is Stage.DOT
        reason = Reason.OUTCOME_UNKNOWN if is_unknown else self.reason
        return DeliveryOutcome(DeliveryStatus.DEFERRED, self.reply, reason, may_be_delivered=is_unknown)


def broken(stage: Stage, text: str, reason: Reason = Reason.NETWORK) -> SmtpError:
    """Return the setback of a connection that failed, told in our own words."""
    return SmtpError(stage, Reply(0, safe_text(text)), reason)
