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
    TLS_REPORT = "tls_report", "TLS report"


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


class TlsReportState(models.TextChoices):
    """The state of a TLS report; one in a system email has the state of this email."""

    WAITING = "waiting", _("waiting")
    SENT = "sent", _("sent")
    FAILED = "failed", _("failed")


STATE_OF_REPORT = models.Case(
    models.When(mail__state=SystemMailState.SENT, then=models.Value(TlsReportState.SENT)),
    models.When(mail__state=SystemMailState.FAILED, then=models.Value(TlsReportState.FAILED)),
    models.When(posted_at__isnull=False, then=models.Value(TlsReportState.SENT)),
    models.When(mail=None, due_at=None, then=models.Value(TlsReportState.FAILED)),
    default=models.Value(TlsReportState.WAITING),
    output_field=models.CharField(),
)


class TlsReportQuerySet(models.QuerySet["TlsReport"]):
    def with_state(self) -> Self:
        """Return the reports with `state`."""
        return self.annotate(found_state=STATE_OF_REPORT)

    def count_by_state(self) -> dict[str, int]:
        """Return the number of reports in each state."""
        found = self.order_by().annotate(found_state=STATE_OF_REPORT)
        counted = found.values_list("found_state").annotate(count=models.Count("pk"))
        return {**dict.fromkeys(TlsReportState.values, 0), **dict(counted)}


class TlsReport(models.Model):
    """A report to a recipient domain about the TLS of a day's sessions (RFC 8460; docs/decisions/0399).

    report_to: a mailto: or https: URI.
    content: the report, as JSON.
    successes, failures: its sessions.
    due_at: of the next attempt; None when there is none any more.
    ends_at: the time after which there is no attempt.
    posted_at: when an https: URI took it.
    mail: the system email with it, for a mailto: URI.
    """

    domain = models.CharField(max_length=253)
    day = models.DateField()
    report_to = models.CharField(max_length=500)
    content = models.JSONField()
    successes = models.BigIntegerField()
    failures = models.BigIntegerField()
    due_at = models.DateTimeField(null=True)
    ends_at = models.DateTimeField()
    posted_at = models.DateTimeField(null=True)
    error = models.CharField(max_length=300, blank=True)
    mail = models.OneToOneField(SystemMail, null=True, on_delete=models.CASCADE, related_name="tls_report")

    objects = TlsReportQuerySet.as_manager()

    class Meta:
        verbose_name = "TLS report"
        constraints = [models.UniqueConstraint(fields=["day", "domain"], name="one_tls_report_a_day")]
        indexes = [models.Index(fields=["due_at"], condition=Q(due_at__isnull=False), name="tls_report_due")]

    def __str__(self) -> str:
        return f"{self.domain} {self.day}"

    @property
    def state(self) -> str:
        """The state of a report of with_state."""
        return str(getattr(self, "found_state", ""))

    @property
    def label(self) -> str:
        """The state of a report of with_state, for people."""
        return str(TlsReportState(self.state).label)

    @property
    def explanation(self) -> str:
        """The error of the last attempt, or the reply to the system email."""
        return self.mail.reply if self.mail else self.error

    @property
    def results(self) -> str:
        """The results of its failures, such as `starttls-not-supported: 3`."""
        details = [one for policy in self.content["policies"] for one in policy.get("failure-details", ())]
        return ", ".join(f"{one['result-type']}: {one['failed-session-count']}" for one in details)
