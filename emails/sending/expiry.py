"""Expiry: the time after which no attempt of an email begins and no final dot is written (docs/decisions/0378).

Queue entries past their expiry are failed by emails.sending.scheduling; those that are leased are left to their worker.
"""

from dataclasses import dataclass

from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply, safe_text
from core.lib.worker.leases import boot_seconds
from emails.states import WaitCause

# What an email waited for when it expired; the queue, without a cause.
WAITED_FOR = {
    WaitCause.APPROVAL: "Nobody had approved it.",
    WaitCause.SENDING_PAUSED: "The operator had paused all sending.",
    WaitCause.WORKSPACE_SUSPENDED: "The workspace was suspended.",
    WaitCause.WORKSPACE_DELETED: "The workspace was deleted.",
    WaitCause.BATCH_PAUSED: "Its batch was paused.",
    WaitCause.STREAM_PAUSED: "Its stream was paused.",
    WaitCause.MEMORY: "The worker had no memory for its attachments.",
    WaitCause.SIGNING_KEY: "The DKIM key of the sending domain could not be decrypted.",
    WaitCause.TRANSPORT: "No transport could send it.",
    WaitCause.DAILY_LIMIT: "The transports had sent their messages of the day.",
    WaitCause.RECEIVER_PACE: "It waited for the pace of its receiver.",
    WaitCause.DESTINATION: "The receiving server was at its limit of connections, or paused after failures.",
    WaitCause.RETRY: "It waited for another attempt.",
}
QUEUED = "It waited in the queue."
MAY_BE_TAKEN = "The email expired. An earlier attempt ended without a reply, so it may have been delivered."


@dataclass(frozen=True)
class Expiry:
    """The expiry of a send job by the boot clock, which was read before the database was asked: never too late."""

    read_at: float
    seconds_left: float | None

    def is_over(self) -> bool:
        return self.seconds_left is not None and boot_seconds() - self.read_at >= self.seconds_left


def expired_outcome(*, handed_to: str | None, cause: str = "", last_error: str = "") -> DeliveryOutcome:
    """Return the outcome of a recipient whose email expired.

    handed_to: the transport that may have taken the message at an earlier attempt; then the outcome is unknown.
    cause: the WaitCause for which it waited, empty for the queue.
    last_error: the reply to the last attempt.
    """
    if handed_to:
        return DeliveryOutcome(DeliveryStatus.FAILED, Reply(0, MAY_BE_TAKEN), FailureReason.OUTCOME_UNKNOWN)
    waited = WAITED_FOR[WaitCause(cause)] if cause in WaitCause.values else QUEUED
    last = f" The last reply was: {last_error}" if cause == WaitCause.RETRY and last_error else ""
    reply = Reply(0, safe_text(f"The email expired before it was sent. {waited}{last}"))
    return DeliveryOutcome(DeliveryStatus.FAILED, reply, FailureReason.EXPIRED, waits_for=cause)
