"""System emails: without workspace, footer or tracking, and not subject to suppressions. Canaries are some of them."""

import re
from datetime import timedelta
from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from core.lib.model_fields import IdField
from core.lib.sealed import seal, unseal

SEAL_PURPOSE = "system-mail"
# The code of an SMTP reply: without one, no host has answered.
REPLY_CODE = re.compile(r"\d{3}\b")


class SystemMailKind(models.TextChoices):
    INVITATION = "invitation"
    RESET = "reset", "password reset"
    PROOF = "proof", "address confirmation"
    NOTICE = "notice", "security notice"
    CANARY = "canary"
    APPROVAL = "approval", "request for approval"


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
    # The transport that has or may have it, or that alone may send it.
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


class CanaryStage(models.TextChoices):
    """The stages of a canary, in their order."""

    ACCEPTED = "accepted", _("accepted")
    CLAIMED = "claimed", _("claimed")
    CONNECTED = "connected", _("connected")
    SENT = "sent", _("accepted by the host")
    RETURNED = "returned", _("came back")
    VERIFIED = "verified", _("verified")


def canary_interval() -> timedelta:
    return timedelta(minutes=settings.CANARY_MINUTES)


class CanaryQuerySet(models.QuerySet["CanaryRun"]):
    def unverified_in_time(self) -> Self:
        """Return the runs that the next check of canaries calls late."""
        return self.filter(verified_at=None, late_at=None, started_at__lt=Now() - canary_interval())

    def newest_ended(self) -> Self:
        """Return the last run of each transport of the settings that is verified or late, with its email."""
        ended = ~Q(verified_at=None) | ~Q(late_at=None) | Q(started_at__lt=Now() - canary_interval())
        newest = self.filter(ended, transport__in=settings.TRANSPORTS.transports).order_by("transport", "-started_at")
        return newest.distinct("transport").select_related("mail")

    def of_last_intervals(self, count: float) -> Self:
        return self.filter(started_at__gt=Now() - count * canary_interval())


class CanaryRun(models.Model):
    """An email that the installation sends itself by one transport, to see that it arrives (docs/decisions/0382).

    Deleted with its system email, whose row has the earlier stages.
    source: the message as it came back, until its signature is checked.
    signature: the result of this check.
    late_at: when a check found that it had not come back within an interval; it may still come later.
    pinged_at: when CANARY_PING_URL was called for it.
    """

    id = IdField("can_", primary_key=True)
    mail = models.OneToOneField(SystemMail, on_delete=models.CASCADE, related_name="canary_run")
    transport = models.CharField(max_length=30)
    started_at = models.DateTimeField(db_default=Now(), editable=False)
    returned_at = models.DateTimeField(null=True, editable=False)
    source = models.BinaryField(null=True, editable=False)
    signature = models.CharField(max_length=16, blank=True, default="", editable=False)
    verified_at = models.DateTimeField(null=True, editable=False)
    late_at = models.DateTimeField(null=True, editable=False)
    pinged_at = models.DateTimeField(null=True, editable=False)

    objects = CanaryQuerySet.as_manager()

    class Meta:
        verbose_name = "canary"
        verbose_name_plural = "canaries"
        indexes = [
            models.Index(fields=["started_at"], name="canary_age"),
            models.Index(fields=["transport", "-started_at"], name="canary_of_transport"),
        ]

    def __str__(self) -> str:
        return f"{self.transport} {self.started_at}"

    @property
    def stage(self) -> CanaryStage:
        """The last stage that worked."""
        reached = {
            CanaryStage.VERIFIED: self.verified_at is not None,
            CanaryStage.RETURNED: self.returned_at is not None,
            CanaryStage.SENT: self.mail.state == SystemMailState.SENT,
            CanaryStage.CONNECTED: REPLY_CODE.match(self.mail.reply) is not None,
            CanaryStage.CLAIMED: self.mail.fence > 0,
        }
        return next((stage for stage, is_reached in reached.items() if is_reached), CanaryStage.ACCEPTED)

    @property
    def is_late(self) -> bool:
        """Whether one of newest_ended was not verified in time."""
        return self.late_at is not None or self.verified_at is None

    @property
    def explanation(self) -> str:
        """The reason why the next stage was not reached, as far as it is known: a reply, or the result of DKIM."""
        if self.stage is CanaryStage.RETURNED:
            return f"DKIM: {self.signature or 'not checked'}"
        return self.mail.reply if self.stage in {CanaryStage.CLAIMED, CanaryStage.CONNECTED} else ""

    def follows_late_one(self) -> bool:
        """Return whether the run of the same transport before this one was late."""
        before = CanaryRun.objects.filter(transport=self.transport, started_at__lt=self.started_at)
        last = before.order_by("-started_at").values_list("late_at", flat=True).first()
        return last is not None
