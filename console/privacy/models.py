"""Erasures and exports of people: queues, and afterwards receipts and files (docs/decisions/0353 and 0373)."""

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now
from django.utils import timezone

from console.privacy.receipts import EXPORTED, KINDS
from core.lib.model_fields import IdField
from core.workspaces.models import Workspace


class Erasure(models.Model):
    """One person to erase from a workspace.

    email: empty once the erasure is completed.
    run, step, place: the pass over the data that it shares with others, the number of its step, and where that one
    continues (console.privacy.steps).
    counts: numbers of erased records by kind, in all passes so far.
    waiting: emails on their way that the last pass found; they are erased by another one.
    """

    id = IdField("era_", primary_key=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="erasures", db_index=False)
    email = models.CharField(max_length=254, blank=True)
    keep_suppression = models.BooleanField(
        default=True,
        help_text="Whether suppressions of the address stay, as a keyed hash. Otherwise they are deleted, and the next "
        "email to the address is sent.",
    )
    counts = models.JSONField(default=dict)
    waiting = models.PositiveIntegerField(
        default=0, help_text="The number of emails that are still on their way. They are erased afterwards."
    )
    passes = models.PositiveSmallIntegerField(default=0)
    run: "str | None" = IdField("era_", null=True)  # type: ignore[misc,assignment]
    step = models.PositiveSmallIntegerField(default=0)
    place = models.JSONField(null=True)
    due_at = models.DateTimeField(db_default=Now(), editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False, help_text="The time of the request.")
    completed_at = models.DateTimeField(null=True, help_text="The time when everything was erased; null before that.")

    class Meta:
        indexes = [
            models.Index(fields=["due_at"], condition=models.Q(completed_at=None), name="erasure_due"),
            models.Index(fields=["workspace", "-created_at", "-id"], name="erasure_newest"),
        ]
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return self.id

    @property
    def status(self) -> str:
        return "completed" if self.completed_at else "processing"

    @property
    def backups_until(self) -> datetime | None:
        """The time from which the operator's backups do not have the data; None before the erasure is completed."""
        return self.completed_at and self.completed_at + timedelta(days=settings.BACKUP_RETENTION_DAYS)

    @property
    def deleted(self) -> dict[str, Any]:
        """The number of erased records of each kind; 0 for kinds without any."""
        return {kind: self.counts.get(kind, 0) for kind in KINDS}


class SubjectExport(models.Model):
    """The export of one person from a workspace. Its files are in the parts of its edition.

    email: empty once the export has expired.
    edition: incremented when it is made again, because a part of it was erased.
    step, place: the number of its step, and where that one continues (console.privacy.records).
    counts: numbers of records by kind, so far.
    size: in bytes, before compression.
    left_out: messages that the limit of the size left no place for.
    """

    id = IdField("sxp_", primary_key=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="subject_exports", db_index=False)
    email = models.CharField(max_length=254, blank=True)
    edition = models.PositiveIntegerField(default=1)
    counts = models.JSONField(default=dict)
    size = models.BigIntegerField(default=0)
    left_out = models.PositiveIntegerField(
        default=0,
        help_text="The number of messages that are not in the file, which would be too large.",
    )
    step = models.PositiveSmallIntegerField(default=0)
    place = models.JSONField(null=True)
    due_at = models.DateTimeField(db_default=Now(), editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False, help_text="The time of the request.")
    completed_at = models.DateTimeField(null=True, help_text="The time when the file was complete; null before that.")
    expires_at = models.DateTimeField(
        null=True, help_text="The time at which the file is deleted; null before it is complete."
    )

    class Meta:
        indexes = [
            models.Index(
                fields=["due_at"],
                condition=models.Q(completed_at=None) & ~models.Q(email=""),
                name="subject_export_due",
            ),
            models.Index(fields=["expires_at"], condition=~models.Q(email=""), name="subject_export_expiry"),
            models.Index(fields=["workspace", "-created_at", "-id"], name="subject_export_newest"),
        ]
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return self.id

    @property
    def status(self) -> str:
        if not self.email or (self.expires_at and self.expires_at <= timezone.now()):
            return "expired"
        return "completed" if self.completed_at else "processing"

    @property
    def records(self) -> dict[str, int]:
        """The number of records of each kind; 0 for kinds without any."""
        return {kind: self.counts.get(kind, 0) for kind in EXPORTED}


class SubjectExportPart(models.Model):
    """A piece of a file of an export, in the order of the numbers.

    about: the ids of emails and received emails whose data it has, or the next pieces have.
    """

    number = models.BigAutoField(primary_key=True)
    export = models.ForeignKey(SubjectExport, on_delete=models.CASCADE, related_name="parts", db_index=False)
    edition = models.PositiveIntegerField()
    file = models.CharField(max_length=100)
    about = ArrayField(models.UUIDField(), default=list)
    data = models.BinaryField()

    class Meta:
        indexes = [models.Index(fields=["export", "edition", "file", "number"], name="subject_export_parts")]
        ordering = ["number"]

    def __str__(self) -> str:
        return f"{self.file} {self.number}"
