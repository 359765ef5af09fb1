"""Inbound reports as received: stored before the SMTP or HTTP reply, processed afterwards."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from core.lib.model_fields import IdField


class InboundReport(models.Model):
    """A row of the report queue: due until it is settled. Times come from the database clock."""

    class ReportStatus(models.TextChoices):
        RECORDED = "recorded"
        DUPLICATE = "repeated", "duplicate"
        UNKNOWN_RECIPIENT = "not_ours", "unknown recipient"
        OTHER_RECIPIENT = "somebody_else", "names another recipient"
        NO_DELIVERY_STATUS = "says_nothing", "no delivery status"
        MANUAL_REVIEW = "for_people", "needs manual review"
        POISON = "poison", "could not be processed"

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


class MailReport(InboundReport):
    """A message to a return path, or to postmaster or abuse, which belong to no recipient."""

    # Not a foreign key: the report outlives a recipient that retention deletes.
    recipient_id = IdField(null=True)  # type: ignore[misc]
    sender = models.CharField(max_length=320)
    peer = models.CharField(max_length=64)
    source = models.BinaryField(help_text="first 256 KiB of the message")

    class Meta(InboundReport.Meta):
        indexes = [
            *InboundReport.Meta.indexes,
            models.Index(fields=["received_at"], condition=Q(recipient_id=None), name="mailreport_for_people"),
        ]

    def __str__(self) -> str:
        return f"report {self.number}"


class ProviderReport(InboundReport):
    """One event of a provider's webhook, as normalized by django-anymail."""

    provider = models.CharField(max_length=40)
    # The named transport whose path was called; empty for the path of any.
    transport = models.CharField(max_length=30, default="", db_default="", editable=False)
    # Repeated calls with the same event make one row, even if other fields differ.
    digest = models.BinaryField(max_length=32, unique=True)
    message_id = models.CharField(max_length=255)
    event = models.JSONField()

    def __str__(self) -> str:
        return f"{self.provider} {self.event.get('kind')}"
