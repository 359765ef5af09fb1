"""States of a received email and the moves between them, and those of a message that is not read yet."""

from django.db.models import TextChoices


class ReceivedStatus(TextChoices):
    """The status of a received email.

    stored: not read yet.
    processed: published.
    blocked: kept back.
    unreadable: published without a reading.
    """

    STORED = "stored"
    PROCESSED = "processed"
    BLOCKED = "blocked"
    UNREADABLE = "unreadable"


class Automatic(TextChoices):
    """Whether a program sent a message (RFC 3834)."""

    NO = "no"
    AUTO_GENERATED = "auto_generated"
    AUTO_REPLIED = "auto_replied"
    LIST = "list"
    BULK = "bulk"


# Messages up to this size are read many at a time, larger ones singly.
SMALL_BYTES = 256 * 1024
# A message that was claimed that often without an outcome may end its workers: it is claimed alone from then on.
MAX_JOINT_CLAIMS = 2
# In parseErrors of a message that was not read to its end.
NOT_READ = "The message could not be read"
TOO_EXPENSIVE = "Reading the message took too long"
UNREAD_ERRORS = (NOT_READ, TOO_EXPENSIVE)

# By target state: the states before it.
TRANSITIONS: dict[ReceivedStatus, frozenset[ReceivedStatus]] = {
    # A published email is published again, and a blocked one judged again, when its message, which could not be read
    # the first time, is reread (docs/decisions/0277).
    ReceivedStatus.PROCESSED: frozenset(
        {ReceivedStatus.STORED, ReceivedStatus.BLOCKED, ReceivedStatus.UNREADABLE, ReceivedStatus.PROCESSED}
    ),
    ReceivedStatus.BLOCKED: frozenset({ReceivedStatus.STORED, ReceivedStatus.BLOCKED}),
    ReceivedStatus.UNREADABLE: frozenset({ReceivedStatus.STORED}),
}


class BlockedReason(TextChoices):
    """The reason why an email was blocked."""

    SENDER_BLOCKED = "sender_blocked"
    NOT_AUTHENTICATED = "not_authenticated"
    SPAM = "spam"
    NOT_A_REPLY = "not_a_reply"
