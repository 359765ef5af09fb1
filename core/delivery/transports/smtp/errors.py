"""SMTP errors and the outcome that each one stands for."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from core.delivery.bounces.classification import SmtpStage, classify, names_sender
from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply, SessionTls, safe_text
from core.delivery.bounces.signals import CLOSING, is_end_of_connection

BEFORE_MAIL = frozenset({SmtpStage.CONNECT, SmtpStage.BANNER, SmtpStage.EHLO, SmtpStage.STARTTLS, SmtpStage.AUTH})
BEFORE_DATA = BEFORE_MAIL | {SmtpStage.MAIL, SmtpStage.RCPT}
# The wait of a message that was refused because a block list has the sending address: removals take hours.
LISTING_WAIT = timedelta(hours=4)


class SmtpError(Exception):
    """Raised when a host refuses a command or the connection fails.

    stage: the command under way.
    reply: the host's refusal; its code is 0 for a connection failure.
    reason: the reason of a connection failure; a refusal is classified instead.
    tls: that of the session, or the policy that prevented it; None if neither is known.
    """

    def __init__(
        self,
        stage: SmtpStage,
        reply: Reply,
        reason: FailureReason = FailureReason.NETWORK,
        *,
        tls: SessionTls | None = None,
    ) -> None:
        super().__init__(reply.text)
        self.stage = stage
        self.reply = reply
        self.reason = reason
        self.tls = tls

    @property
    def is_connection_error(self) -> bool:
        """Return whether the error concerns the host rather than the message."""
        return self.stage in BEFORE_MAIL or not self.reply.code

    @property
    def may_try_next_host(self) -> bool:
        """Return whether the same attempt may try another host (F21): never after DATA began."""
        return self.is_connection_error and self.stage in BEFORE_DATA

    @property
    def is_stale_connection(self) -> bool:
        """Return whether the host had closed a kept connection, and so never saw the message."""
        if self.stage is not SmtpStage.MAIL:
            return False
        return not self.reply.code or (self.reply.code == CLOSING and is_end_of_connection(self.reply))

    def outcome(self, *, sender_names: Sequence[str], recipient: str) -> DeliveryOutcome:
        """Return the outcome of the attempt that this error ended. sender_names: see `names_sender`."""
        if self.reply.code:
            classification = classify(self.reply, stage=self.stage)
            if classification.is_recipient_fault and names_sender(
                self.reply.text, names=sender_names, recipient=recipient
            ):
                classification = replace(classification, reason=FailureReason.POLICY, is_recipient_fault=False)
            return DeliveryOutcome(
                classification.status,
                self.reply,
                classification.reason,
                is_recipient_fault=classification.is_recipient_fault,
                # Another host, or this one after an upgrade, may accept the address.
                never_suppresses=classification.reason is FailureReason.SMTPUTF8_REQUIRED,
                retry_after=LISTING_WAIT if self.reply.code >= 500 and classification.listed_by else timedelta(0),
                listed_by=classification.listed_by,
                tls=self.tls,
            )
        # The whole message was sent and no reply came: the host may have accepted it.
        is_unknown = self.stage is SmtpStage.DOT
        reason = FailureReason.OUTCOME_UNKNOWN if is_unknown else self.reason
        return DeliveryOutcome(DeliveryStatus.DEFERRED, self.reply, reason, may_be_delivered=is_unknown, tls=self.tls)


def connection_error(
    stage: SmtpStage, text: str, reason: FailureReason = FailureReason.NETWORK, *, tls: SessionTls | None = None
) -> SmtpError:
    """Return the error of a failed connection, with a text written by Postrider."""
    return SmtpError(stage, Reply(0, safe_text(text)), reason, tls=tls)
