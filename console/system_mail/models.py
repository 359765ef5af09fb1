"""System emails: without workspace, footer or tracking, and not subject to suppressions."""

from typing import Self

from django.db import models
from django.db.models.functions import Now

from core.lib.model_fields import IdField
from core.lib.sealed import seal, unseal

SEAL_PURPOSE = "system-mail"


class SystemMailKind(models.TextChoices):
    INVITATION = "invitation"
    RESET = "reset", "password reset"
    PROOF = "proof", "address confirmation"
    NOTICE = "notice", "security notice"


class SystemMailState(models.TextChoices):
    # The word of the pages (docs/decisions/0268).
    WAITING = "waiting", "Queued"
    SENT = "sent"
    FAILED = "failed"
    NOBODY = "nobody", "no such account"


class SystemMail(models.Model):
    """A system email to one address, and its queue entry.

    The text contains links that give access to accounts: it is encrypted while the email waits and deleted when it is
    finished. due_at: the end of the wait or the lease. A worker that lost its lease finds a different fence.
    """

    id = IdField("sysm_", primary_key=True)
    kind = models.CharField(max_length=12, choices=SystemMailKind.choices)
    recipient = models.EmailField()
    subject = models.CharField(max_length=200)
    sealed_text = models.TextField(editable=False)
    # The language of the text, for the button and the lang attribute of the HTML version.
    language = models.CharField(max_length=8, db_default="en", default="en", editable=False)
    state = models.CharField(max_length=8, choices=SystemMailState.choices, default=SystemMailState.WAITING)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    due_at = models.DateTimeField(db_default=Now(), editable=False)
    finished_at = models.DateTimeField(null=True, editable=False)
    fence = models.PositiveIntegerField(db_default=0, editable=False)
    attempts = models.PositiveIntegerField(db_default=0, editable=False)
    reply = models.TextField(blank=True, editable=False)
    # The named transport that has or may have it.
    handed_to = models.CharField(max_length=30, null=True, editable=False)  # noqa: DJ001

    class Meta:
        verbose_name = "system email"
        verbose_name_plural = "system emails"
        indexes = [
            models.Index(fields=["due_at"], condition=models.Q(state="waiting"), name="system_mail_due"),
            models.Index(fields=["created_at"], name="system_mail_age"),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} to {self.recipient}"

    def with_text(self, text: str) -> Self:
        """Encrypt and set the text; return the system email."""
        self.sealed_text = seal(text.encode(), purpose=SEAL_PURPOSE, row=self.id)
        return self

    @property
    def text(self) -> str:
        """The decrypted text. Raises InvalidTag or UnknownKey if it cannot be decrypted."""
        return unseal(self.sealed_text, purpose=SEAL_PURPOSE, row=self.id).decode()
