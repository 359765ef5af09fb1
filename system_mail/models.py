"""Mail of the service itself: it belongs to no workspace, has no footer, no tracking, and knows no suppression."""

from typing import Self

from django.db import models
from django.db.models.functions import Now

from lib.model_fields import IdField
from lib.sealed import seal, unseal

SEAL_PURPOSE = "system-mail"


class SystemMail(models.Model):
    """One message to one address, and the queue that it waits in.

    The text holds links that open accounts: sealed while it waits, gone when the mail is finished. due_at says
    when a wait or a lease ends; a worker that lost its lease finds another fence.
    """

    class Kind(models.TextChoices):
        INVITATION = "invitation"
        RESET = "reset", "password reset"
        PROOF = "proof", "address confirmation"
        NOTICE = "notice", "security notice"

    class State(models.TextChoices):
        WAITING = "waiting"
        SENT = "sent"
        FAILED = "failed"
        NOBODY = "nobody", "no such account"

    id = IdField("sysm_", primary_key=True)
    kind = models.CharField(max_length=12, choices=Kind.choices)
    recipient = models.EmailField()
    subject = models.CharField(max_length=200)
    sealed_text = models.TextField(editable=False)
    state = models.CharField(max_length=8, choices=State.choices, default=State.WAITING)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    due_at = models.DateTimeField(db_default=Now(), editable=False)
    finished_at = models.DateTimeField(null=True, editable=False)
    fence = models.PositiveIntegerField(db_default=0, editable=False)
    attempts = models.PositiveIntegerField(db_default=0, editable=False)
    reply = models.TextField(blank=True, editable=False)

    class Meta:
        verbose_name = "system mail"
        verbose_name_plural = "system mail"
        indexes = [
            models.Index(fields=["due_at"], condition=models.Q(state="waiting"), name="system_mail_due"),
            models.Index(fields=["created_at"], name="system_mail_age"),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} to {self.recipient}"

    def with_text(self, text: str) -> Self:
        self.sealed_text = seal(text.encode(), purpose=SEAL_PURPOSE, row=self.id)
        return self

    @property
    def text(self) -> str:
        return unseal(self.sealed_text, purpose=SEAL_PURPOSE, row=self.id).decode()
