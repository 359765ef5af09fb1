"""States of a received email, and the moves between them."""

from django.db.models import TextChoices


class ReceivedStatus(TextChoices):
    """stored: not read yet. processed: published. blocked: kept back. unreadable: published without a reading."""

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


# In parseErrors of a message whose content was not read.
NOT_READ = "The message could not be read"

# By target state: the states before it.
TRANSITIONS: dict[ReceivedStatus, frozenset[ReceivedStatus]] = {
    ReceivedStatus.PROCESSED: frozenset({ReceivedStatus.STORED, ReceivedStatus.BLOCKED}),
    ReceivedStatus.BLOCKED: frozenset({ReceivedStatus.STORED}),
    ReceivedStatus.UNREADABLE: frozenset({ReceivedStatus.STORED}),
}


class BlockedReason(TextChoices):
    """The reason why an email was blocked."""

    SENDER_BLOCKED = "sender_blocked"
    NOT_AUTHENTICATED = "not_authenticated"
    SPAM = "spam"
    NOT_A_REPLY = "not_a_reply"
