"""Statuses of recipients and emails, and the transitions between them (docs/specification.md, States); causes of waits.

Code never assigns a status: emails.recipient_moves moves recipients along TRANSITIONS, and emails.status_rollup
computes the status of an email.
"""

from dataclasses import dataclass
from enum import StrEnum

from django.db import models


class EmailStatus(models.TextChoices):
    SCHEDULED = "scheduled"
    QUEUED = "queued"
    SENT = "sent"
    DELIVERED = "delivered"
    BOUNCED = "bounced"
    FAILED = "failed"
    OPENED = "opened"
    CLICKED = "clicked"
    CANCELLED = "cancelled"


class WaitCause(models.TextChoices):
    """The causes for which an entry waits, in the order in which they are asked and shown.

    Those up to STREAM_PAUSED are in STOPPED_SINCE of emails.sending.sending_checks. The others are in the entry's row:
    with all but DAILY_LIMIT and RETRY it is parked, without using an attempt. RETRY is the last one, because it ends by
    itself.
    """

    APPROVAL = "approval"
    SENDING_PAUSED = "sending_paused"
    WORKSPACE_SUSPENDED = "workspace_suspended"
    WORKSPACE_DELETED = "workspace_deleted"
    BATCH_PAUSED = "batch_paused"
    STREAM_PAUSED = "stream_paused"
    MEMORY = "memory"
    SIGNING_KEY = "signing_key"
    TRANSPORT = "transport"
    DAILY_LIMIT = "daily_limit"
    RECEIVER_PACE = "receiver_pace"
    DESTINATION = "destination"
    RETRY = "retry"


class RecipientCounter(StrEnum):
    """Counters of a workspace's recipients over all time; DELAYED counts entries now scheduled, waiting or held."""

    ACCEPTED = "recipients.accepted"
    COMPLETED = "recipients.completed"
    FAILED = "recipients.failed"
    CANCELLED = "recipients.cancelled"
    DELAYED = "recipients.delayed"


@dataclass(frozen=True)
class Transition:
    """The transition of a recipient to a status.

    sources: the statuses that it may replace.
    times: the columns that it sets unless they are set; with finished_at, the recipient leaves the queue.
    counter: counts the finished recipients that have the status.
    """

    sources: tuple[EmailStatus, ...] = ()
    times: tuple[str, ...] = ()
    counter: RecipientCounter | None = None


# Statuses by precedence: an email has the first of these that any of its recipients has.
TRANSITIONS = {
    # A click implies an open, and both imply a delivery.
    EmailStatus.CLICKED: Transition(
        (EmailStatus.QUEUED, EmailStatus.SENT, EmailStatus.DELIVERED, EmailStatus.OPENED),
        ("delivered_at", "opened_at", "clicked_at"),
        RecipientCounter.COMPLETED,
    ),
    # queued: the pixel may load before the worker has recorded that the message was accepted.
    EmailStatus.OPENED: Transition(
        (EmailStatus.QUEUED, EmailStatus.SENT, EmailStatus.DELIVERED),
        ("delivered_at", "opened_at"),
        RecipientCounter.COMPLETED,
    ),
    EmailStatus.DELIVERED: Transition((EmailStatus.SENT,), ("delivered_at", "finished_at"), RecipientCounter.COMPLETED),
    EmailStatus.SENT: Transition((EmailStatus.QUEUED,), ("sent_at", "finished_at"), RecipientCounter.COMPLETED),
    EmailStatus.QUEUED: Transition((EmailStatus.SCHEDULED,)),
    EmailStatus.SCHEDULED: Transition(),
    # delivered: a server that accepted the message and sent a DSN later.
    EmailStatus.BOUNCED: Transition(
        (EmailStatus.QUEUED, EmailStatus.SENT, EmailStatus.DELIVERED),
        ("bounced_at", "finished_at"),
        RecipientCounter.FAILED,
    ),
    # sent: a DSN about a 4xx that was never resolved.
    EmailStatus.FAILED: Transition((EmailStatus.QUEUED, EmailStatus.SENT), ("finished_at",), RecipientCounter.FAILED),
    # queued: only while sending is paused (docs/decisions/0092), by a cap (docs/decisions/0389), or while it waits for
    # approval (docs/decisions/0390).
    EmailStatus.CANCELLED: Transition(
        (EmailStatus.SCHEDULED, EmailStatus.QUEUED), ("finished_at",), RecipientCounter.CANCELLED
    ),
}
# The counter of a finished recipient, by status.
FINISHED_COUNTERS = {status: move.counter for status, move in TRANSITIONS.items() if move.counter}
# A server accepted the message and has not bounced it since.
SENT_STATUSES = {status for status, counter in FINISHED_COUNTERS.items() if counter is RecipientCounter.COMPLETED}
