"""The states of the pace of a source at a receiver."""

from django.db.models import TextChoices


class PairState(TextChoices):
    """The state of a pace; those in which nothing leaves come first.

    STOPPED by the staff, SUSPENDED because of a reply, LIMITED to a rate, LEARNING how much the receiver takes.
    """

    STOPPED = "stopped"
    SUSPENDED = "suspended"
    LIMITED = "limited"
    LEARNING = "learning"
