"""Statuses of recipients and emails, and the transitions between them (docs/specification.md, States).

Code never assigns a status: a conditional update names the target, and `source_statuses` the statuses it may replace.
"""

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


TRANSITIONS: dict[EmailStatus, frozenset[EmailStatus]] = {
    EmailStatus.SCHEDULED: frozenset({EmailStatus.QUEUED, EmailStatus.CANCELLED}),
    # opened, clicked: the pixel may load before the worker has recorded that the message was accepted.
    EmailStatus.QUEUED: frozenset(
        {EmailStatus.SENT, EmailStatus.BOUNCED, EmailStatus.FAILED, EmailStatus.OPENED, EmailStatus.CLICKED}
    ),
    # failed: a DSN about a 4xx that was never resolved.
    EmailStatus.SENT: frozenset(
        {EmailStatus.DELIVERED, EmailStatus.BOUNCED, EmailStatus.FAILED, EmailStatus.OPENED, EmailStatus.CLICKED}
    ),
    # bounced: a server that accepted the message and sent a DSN later.
    EmailStatus.DELIVERED: frozenset({EmailStatus.BOUNCED, EmailStatus.OPENED, EmailStatus.CLICKED}),
    EmailStatus.OPENED: frozenset({EmailStatus.CLICKED}),
    EmailStatus.BOUNCED: frozenset(),
    EmailStatus.FAILED: frozenset(),
    EmailStatus.CLICKED: frozenset(),
    EmailStatus.CANCELLED: frozenset(),
}

# A server accepted the message and has not bounced it since.
SENT_STATUSES = frozenset({EmailStatus.SENT, EmailStatus.DELIVERED, EmailStatus.OPENED, EmailStatus.CLICKED})

# The status of an email is the first of these that any of its recipients has.
PRECEDENCE = (
    EmailStatus.CLICKED,
    EmailStatus.OPENED,
    EmailStatus.DELIVERED,
    EmailStatus.SENT,
    EmailStatus.QUEUED,
    EmailStatus.SCHEDULED,
    EmailStatus.BOUNCED,
    EmailStatus.FAILED,
    EmailStatus.CANCELLED,
)


def source_statuses(target: EmailStatus) -> list[str]:
    """Return the statuses from which a recipient may move to target."""
    return [source.value for source, targets in TRANSITIONS.items() if target in targets]
