"""Messages caught by the built-in inbox instead of being sent."""

from django.db import models
from django.db.models.functions import Now

from core.lib.model_fields import IdField
from core.workspaces.models import Workspace


class CaughtMail(models.Model):
    """One message for one envelope recipient, as received over SMTP."""

    id = IdField("mail_", primary_key=True)
    workspace = models.ForeignKey(
        Workspace, on_delete=models.CASCADE, null=True, help_text="empty for system email", db_index=False
    )
    email_id = IdField(null=True)  # type: ignore[misc]  # empty like the workspace
    envelope_from = models.CharField(max_length=320, blank=True)
    recipient = models.CharField(max_length=320)
    sender = models.TextField()
    subject = models.TextField()
    source = models.BinaryField()
    # Without it, source is only the header (docs/decisions/0352).
    keeps_content = models.BooleanField(default=True, db_default=True)
    # In place of the recipient, whom another transport would have reached (docs/decisions/0387).
    is_captured = models.BooleanField(default=False, db_default=False)
    received_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        verbose_name = "caught mail"
        verbose_name_plural = "inbox"
        indexes = [
            models.Index(fields=["workspace", "-received_at"], name="caught_newest"),
            models.Index(fields=["email_id"], condition=~models.Q(email_id=None), name="caught_by_email"),
        ]
        ordering = ["-received_at", "-id"]

    def __str__(self) -> str:
        return self.subject
