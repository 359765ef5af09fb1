"""What mail systems have told us, as it came: stored before it is answered, read afterwards."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from lib.model_fields import IdField


class Told(models.Model):
    """A row of the queue of things told: due until it is settled. Times are the database's."""

    class ReportStatus(models.TextChoices):
        RECORDED = "recorded"
        REPEATED = "repeated", "told before"
        NOT_OURS = "not_ours", "about nobody of ours"
        SOMEBODY_ELSE = "somebody_else", "names another recipient"
        SAYS_NOTHING = "says_nothing", "says nothing about delivery"
        FOR_PEOPLE = "for_people", "for people to read"
        POISON = "poison", "could not be read"

    number = models.BigAutoField(primary_key=True)
    received_at = models.DateTimeField(db_default=Now(), editable=False)
    due_at = models.DateTimeField(db_default=Now(), editable=False)
    attempts = models.PositiveSmallIntegerField(db_default=0, editable=False)
    processed_at = models.DateTimeField(null=True, editable=False)
    verdict = models.CharField(max_length=16, choices=ReportStatus.choices, blank=True, default="", editable=False)

    objects = models.Manager()

    class Meta:
        abstract = True
        indexes = [
            models.Index(fields=["due_at"], condition=Q(processed_at=None), name="%(class)s_due"),
            models.Index(fields=["processed_at"], condition=~Q(processed_at=None), name="%(class)s_done"),
        ]
        ordering = ["-number"]

    @classmethod
    def table(cls) -> str:
        return cls._meta.db_table


class MailReport(Told):
    """A message to a return path, or to the postmaster: then it belongs to no recipient."""

    # Not a foreign key: retention takes recipients away, and what was told about them is told all the same.
    recipient_id = IdField(null=True, default=None)  # type: ignore[misc]
    sender = models.CharField(max_length=320, help_text="envelope sender, empty for a report")
    peer = models.CharField(max_length=64, help_text="the address of the host that brought it")
    source = models.BinaryField(help_text="the first 256 KiB")

    class Meta(Told.Meta):
        indexes = [
            *Told.Meta.indexes,
            models.Index(fields=["received_at"], condition=Q(recipient_id=None), name="mailreport_for_people"),
        ]

    def __str__(self) -> str:
        return f"report {self.number}"


class ProviderReport(Told):
    """One event of a provider's webhook, in the words of anymail."""

    provider = models.CharField(max_length=40)
    # The same event told twice is one row, whatever else differs between the two calls.
    digest = models.BinaryField(max_length=32, unique=True)
    message_id = models.CharField(max_length=255, help_text="the provider's id of the message")
    event = models.JSONField()

    def __str__(self) -> str:
        return f"{self.provider} {self.event.get('kind')}"
