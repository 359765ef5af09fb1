"""Stages of the rows of a lease queue, for the queues and for programs without settings, such as the benchmarks."""

from django.db.models import IntegerChoices


class Stage(IntegerChoices):
    """The stage of a row; in SQL a literal, since a plan for any parameter could not use the partial indexes."""

    WAITING = 0
    READY = 1
    LEASED = 2
    SCHEDULED = 3
    # Emails only: their stream is paused.
    HELD = 4
    # Emails only: they wait for the pace of a receiver.
    PACED = 5
    # Emails only: they wait for the decision of a person.
    UNAPPROVED = 6
