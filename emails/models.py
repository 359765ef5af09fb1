"""Emails, their content and recipients, the queue and the timeline.

The status, times and error of an Email are rolled up from its recipients (emails.status_rollup). Only
emails.sending.queue moves queue entries.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Lower, Now

from core.delivery.message.compose import Placement
from core.delivery.pacing.pairs import Pair, PairKey
from core.delivery.pacing.volumes import Volume
from core.delivery.recipients import Diversion
from core.delivery.sources.answers import ListingAnswer, ReverseName, ReverseStatus
from core.delivery.sources.blocklists import removal_url
from core.delivery.transports.tls_policies.sts_policy import StsMode
from core.lib.model_fields import IdField, KnownTimeField
from core.lib.worker.stages import Stage
from core.workspaces.key_limits import KeyLimits, LimitedQuerySet
from core.workspaces.models import ApiKey, Workspace
from emails.states import TRANSITIONS, EmailStatus
from streams.models import MAIN, NORMAL_RANK
from templates_app.language.locales import MAX_LENGTH as MAX_LOCALE_LENGTH
from templates_app.models import Template, TemplateSet, TemplateVersion

# A block list that has an address again is reported to the staff once in this time.
NOTICE_EVERY = timedelta(days=1)


def message_id(recipient_id: str, *, domain: str) -> str:
    """Return the Message-ID: unique per recipient, and the same on every attempt."""
    return f"<{recipient_id}@{domain}>"


class Acceptance(models.Model):
    """A used idempotency key with its stored response; never deleted."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    key = models.CharField(max_length=260)
    operation = models.CharField(max_length=16)
    fingerprint = models.CharField(max_length=64, help_text="SHA-256 of the body without the key")
    answer = models.JSONField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "key"], name="one_acceptance_a_key")]

    def __str__(self) -> str:
        return self.key


class Content(models.Model):
    """The HTML and text of an email as accepted: immutable, and shared with resent copies."""

    id = IdField("con_", primary_key=True)
    html = models.TextField()
    text = models.TextField()

    def __str__(self) -> str:
        return self.id


class Attachment(models.Model):
    """A file attached to a content. Its bytes are read for sending, never for a list."""

    content = models.ForeignKey(Content, on_delete=models.CASCADE, related_name="attachments", db_index=False)
    position = models.PositiveSmallIntegerField()
    filename = models.CharField(max_length=255, help_text="The name of the file, without a path.")
    content_type = models.CharField(max_length=255)
    cid = models.CharField(max_length=255, null=True, help_text="Content-ID of an inline image")  # noqa: DJ001
    placement = models.CharField(
        max_length=16, choices=[(value, value) for value in Placement], db_default=Placement.ATTACHED
    )
    size = models.PositiveIntegerField(help_text="The size after decoding, in bytes.")
    data = models.BinaryField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["content", "position"], name="one_attachment_a_position")]
        ordering = ["position"]

    def __str__(self) -> str:
        return self.filename


class TlsOption(models.TextChoices):
    """The TLS of an email: as the setting and the sending domain have it, or required."""

    OPPORTUNISTIC = "opportunistic"
    REQUIRED = "required"


class Entrance(models.TextChoices):
    """The interface through which an email was accepted."""

    API = "api", "API"
    SMTP = "smtp", "SMTP"
    DASHBOARD = "dashboard", "Dashboard"
    COMPATIBILITY = "compatibility", "Compatibility"


def emails_within(limits: KeyLimits, *, workspace_id: str) -> Q:
    """Return the condition of emails that a key could have sent by its limits to domains, templates and streams."""
    condition = Q(from_domain__in=limits.domains) if limits.domains else Q()
    if limits.streams:
        condition &= Q(stream__in=limits.streams)
    if limits.templates:
        named = Template.objects.filter(workspace=workspace_id, alias__in=limits.templates)
        condition &= Q(template_id__in=[*limits.templates, *named.values_list("id", flat=True)])
    return condition


class EmailBatchQuerySet(LimitedQuerySet["EmailBatch"]):
    def within(self, limits: KeyLimits, *, workspace_id: str) -> Self:
        """Return the batches that have no email outside of the limits."""
        batches = self.filter(is_test=True) if limits.is_test else self
        if not limits.restricts_emails:
            return batches
        emails = Email.objects.filter(batch=OuterRef("pk"))
        return batches.exclude(Exists(emails.exclude(emails_within(limits, workspace_id=workspace_id))))


class EmailBatch(models.Model):
    """Scheduled emails that are paused or cancelled together (emails.accept.batches), or that one request accepted."""

    class State(models.TextChoices):
        OPEN = "open"
        PAUSED = "paused"
        CANCELLED = "cancelled"

    id = IdField("bat_", primary_key=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    state = models.CharField(max_length=16, choices=State.choices, default=State.OPEN)
    size = models.PositiveIntegerField(default=0, help_text="emails added so far")
    # Created with a test key, and for test emails only; a batch of live emails has none of them.
    is_test = models.BooleanField(default=False, db_default=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = EmailBatchQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "email batches"
        indexes = [
            models.Index(fields=["workspace", "-created_at", "-id"], condition=~Q(state="open"), name="batch_closed")
        ]
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return self.id


# The emails in the index of tags; others write nothing to it.
TAGGED = ~Q(tags=[])


# How long an email waits for approval before it is cancelled.
APPROVAL_PERIOD = timedelta(days=7)
HELD = Q(approval_expires_at__isnull=False)


@dataclass(frozen=True)
class Held:
    """The wait of an email for the decision of a person.

    since: its acceptance.
    expires_at: when it is cancelled without a decision.
    """

    since: datetime
    expires_at: datetime
    reason: str = "approval"


class EmailQuerySet(LimitedQuerySet["Email"]):
    def held(self) -> Self:
        """Return the emails that wait for approval."""
        return self.filter(HELD, finished_at=None)

    def within(self, limits: KeyLimits, *, workspace_id: str) -> Self:
        emails = self.filter(is_test=True) if limits.is_test else self
        return emails.filter(emails_within(limits, workspace_id=workspace_id)) if limits.restricts_emails else emails


class Email(models.Model):
    """One accepted email: one id, one or many recipients.

    Its text comes from its content, or from a template version and template_data. With a template, the content
    has only the attachments.
    """

    id = IdField(primary_key=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_index=False)
    content = models.ForeignKey(Content, on_delete=models.PROTECT, null=True)
    template_version = models.ForeignKey(TemplateVersion, on_delete=models.PROTECT, null=True)
    # The layout and partials that it was accepted with; null without them.
    template_set = models.ForeignKey(
        TemplateSet, on_delete=models.DO_NOTHING, null=True, db_constraint=False, db_index=False
    )
    locale = models.CharField(  # noqa: DJ001 - null on the wire, too
        max_length=MAX_LOCALE_LENGTH,
        null=True,
        help_text="The language that the request asked for; null without one.",
    )
    locale_used = models.CharField(  # noqa: DJ001 - null on the wire, too
        max_length=MAX_LOCALE_LENGTH,
        null=True,
        help_text="The language of the texts; null if it is not known.",
    )
    batch = models.ForeignKey(EmailBatch, on_delete=models.DO_NOTHING, null=True, db_constraint=False, db_index=False)
    template_id = models.CharField(max_length=26, null=True)  # noqa: DJ001 - outlives the template
    # JSON text: jsonb would reorder keys and normalize numbers, which changes the rendered email.
    template_data = models.TextField(null=True)  # noqa: DJ001 - null without a template
    sender = models.TextField()
    from_domain = models.CharField(max_length=253)
    reply_to = models.TextField(null=True)  # noqa: DJ001 - null on the wire, too
    # The domain of reply addresses (replyTracking), which take the place of reply_to.
    reply_domain = models.CharField(max_length=253, null=True)  # noqa: DJ001 - null without reply tracking
    to = ArrayField(models.TextField())
    cc = ArrayField(
        models.TextField(), help_text="The addresses in Cc. They receive the email and every recipient sees them."
    )
    bcc = ArrayField(
        models.TextField(), help_text="The addresses in Bcc. They receive the email and no other recipient sees them."
    )
    subject = models.TextField()
    search_text = models.TextField(help_text="to and subject in lower case")
    tags = ArrayField(
        models.TextField(),
        help_text="Names for filters and statistics, such as `welcome`. Recipients do not see them.",
    )
    metadata = models.JSONField(null=True)
    headers = models.JSONField(default=dict)
    # The API key that accepted it; null for the dashboard, forwards and earlier versions (docs/decisions/0388).
    api_key = models.ForeignKey(
        ApiKey, on_delete=models.DO_NOTHING, null=True, db_constraint=False, db_index=False, related_name="+"
    )
    # Accepted with a test key: never sent, and left out of analytics, quota and reputation (docs/decisions/0109).
    is_test = models.BooleanField(default=False, db_default=False)
    # No message leaves to its recipient: left out of analytics, quota and reputation (docs/decisions/0387).
    is_diverted = models.BooleanField(default=False, db_default=False)
    track_opens = models.BooleanField(default=True)
    track_clicks = models.BooleanField(default=True)
    stream = models.CharField(max_length=40, default=MAIN, db_default=MAIN)
    entrance = models.CharField(max_length=16, choices=Entrance.choices, db_default=Entrance.API)
    created_at = models.DateTimeField()
    scheduled_for = models.DateTimeField(null=True)
    sensitive = models.BooleanField(
        default=False, db_default=False, help_text="Whether nobody can read the content (docs/decisions/0352)."
    )
    # Hours from the last outcome to the removal of the content; null as the plan, and after the removal. Its check
    # constraint would scan the table.
    content_hours = models.SmallIntegerField(null=True)
    content_removed_at = models.DateTimeField(null=True)
    # Besides DELIVERY_TLS and the sending domain; also of the hosts after the next one (docs/decisions/0396).
    tls = models.CharField(  # noqa: DJ001 - null in the request, too
        max_length=13,
        null=True,
        choices=[(option.value, option.value) for option in TlsOption],
        help_text="`required` if the email itself requires TLS to a verified mail host.",
    )
    # After this time no attempt begins; null for none (docs/decisions/0378).
    expires_at = models.DateTimeField(null=True)
    # The seconds from acceptance or scheduled_for to expires_at; null if the request has a time, or without one.
    deliver_within = models.IntegerField(null=True)
    # Set while it waits for approval (docs/decisions/0390). One that was cancelled or has expired keeps it until then.
    approval_expires_at = models.DateTimeField(null=True)
    # Rolled up from the recipients.
    status = models.CharField(max_length=16, choices=EmailStatus.choices)
    sent_at = models.DateTimeField(null=True)
    delivered_at = KnownTimeField(null=True)
    bounced_at = models.DateTimeField(null=True)
    opened_at = KnownTimeField(null=True)
    clicked_at = KnownTimeField(null=True)
    error_message = models.TextField(null=True)  # noqa: DJ001 - null on the wire, too
    retry_count = models.PositiveSmallIntegerField(default=0)
    finished_at = models.DateTimeField(
        null=True, help_text="time the last recipient finished; retention counts from here"
    )

    objects = EmailQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["workspace", "-created_at", "-id"], name="email_newest"),
            models.Index(fields=["workspace", "status", "-created_at", "-id"], name="email_by_status"),
            models.Index(fields=["batch"], condition=~Q(batch=None), name="email_batch"),
            # Only emails whose content is removed before them (emails.upkeep.content_removal).
            models.Index(
                fields=["content_hours", "finished_at"], condition=~Q(content_hours=None), name="email_content_due"
            ),
            # For retention (emails.upkeep.retention).
            models.Index(fields=["template_set"], condition=~Q(template_set=None), name="email_by_template_set"),
            models.Index(fields=["workspace", "-created_at", "-id"], condition=Q(is_test=True), name="email_test"),
            models.Index(
                fields=["workspace", "template_id", "-created_at"],
                condition=models.Q(template_id__isnull=False),
                name="email_by_template",
            ),
            models.Index(
                fields=["workspace", "stream", "-created_at", "-id"],
                condition=~Q(stream=MAIN),
                name="email_by_stream",
            ),
            # For the list of emails that wait for approval, and for those whose time is over (emails.approvals).
            models.Index(fields=["workspace", "-created_at", "-id"], condition=HELD, name="email_held"),
            models.Index(fields=["approval_expires_at"], condition=HELD, name="email_approval_due"),
            # A short pending list (kB): the insert that flushes it delays an API request.
            GinIndex(fields=["tags"], condition=TAGGED, gin_pending_list_limit=512, name="email_by_tag"),
        ]
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return self.subject

    def event_fields(self, status: str | None, *, recipient_id: str | None) -> dict[str, Any]:
        """Return the members of an event's data that describe the email.

        status: at the time of the event.
        recipient_id: the recipient that the event is about, if it is about one.
        """
        message = {"messageId": message_id(recipient_id, domain=self.from_domain)} if recipient_id else {}
        return {
            "emailId": self.id,
            **message,
            "to": self.addressees,
            "from": self.sender,
            "subject": self.subject,
            **({"status": status} if status else {}),
            "tags": self.tags,
            "metadata": self.metadata,
            **({"test": True} if self.is_test else {}),
            **({"stream": self.named_stream} if self.named_stream else {}),
        }

    @property
    def named_stream(self) -> str:
        """The stream as responses show it: empty for `main`."""
        return "" if self.stream == MAIN else self.stream

    @property
    def held(self) -> Held | None:
        """The wait for approval; None if it does not wait for it."""
        if self.approval_expires_at is None or self.finished_at:
            return None
        return Held(self.approval_expires_at - APPROVAL_PERIOD, self.approval_expires_at)

    @property
    def keeps_content(self) -> bool:
        """Whether the content can be read: neither sensitive nor removed (docs/decisions/0351)."""
        return not self.sensitive and self.content_removed_at is None

    @property
    def seconds_to_expiry(self) -> int | None:
        """The seconds from the time in the Date header to the expiry; None without one."""
        if self.expires_at is None:
            return None
        return self.deliver_within or math.ceil((self.expires_at - self.date).total_seconds())

    @property
    def addressees(self) -> str:
        """The To addresses as one string (docs/specification.md, Sending an email)."""
        return ", ".join(self.to)

    @property
    def quota_units(self) -> int:
        """The quota units that the email used (QUOTA_UNIT)."""
        if self.is_test or self.is_diverted:
            return 0
        return self.recipients.filter(diversion=None).count() if settings.QUOTA_UNIT == "recipient" else 1

    @property
    def date(self) -> datetime:
        """The time in the Date header: the same on every attempt, and the scheduled time of a scheduled email."""
        return self.scheduled_for or self.created_at


class ApprovalNotice(models.Model):
    """The notices to the approvers of a workspace about emails that wait (console.system_mail.approval_requests)."""

    workspace = models.OneToOneField(Workspace, primary_key=True, on_delete=models.CASCADE)
    has_new = models.BooleanField(help_text="whether an email was held after the last notice")
    sent_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["sent_at"], condition=Q(has_new=True), name="approval_notice_due")]

    def __str__(self) -> str:
        return self.workspace_id


class Recipient(models.Model):
    """One envelope recipient. Columns that change have no index, so that updates stay in their page (HOT)."""

    class RecipientType(models.TextChoices):
        TO = "to"
        CC = "cc"
        BCC = "bcc"

    id = IdField(primary_key=True)
    email = models.ForeignKey(Email, on_delete=models.CASCADE, related_name="recipients")
    kind = models.CharField(max_length=3, choices=RecipientType.choices)
    position = models.PositiveSmallIntegerField()
    address = models.CharField(max_length=254)
    state = models.CharField(max_length=16, choices=EmailStatus.choices)
    attempts = models.PositiveSmallIntegerField(default=0)
    sent_at = models.DateTimeField(null=True)
    delivered_at = KnownTimeField(null=True)
    bounced_at = models.DateTimeField(null=True)
    opened_at = KnownTimeField(null=True)
    clicked_at = KnownTimeField(null=True)
    finished_at = models.DateTimeField(null=True, help_text="time it left the queue for the last time")
    # The last SMTP reply that was not an acceptance.
    replied_at = models.DateTimeField(null=True)
    reply_code = models.PositiveSmallIntegerField(null=True)
    enhanced_code = models.CharField(max_length=12, null=True)  # noqa: DJ001
    error_message = models.TextField(null=True)  # noqa: DJ001
    reason = models.CharField(  # noqa: DJ001
        max_length=40,
        null=True,
        help_text="The classified reason of a bounce or failure, such as `unknown_user`; null without one.",
    )
    provider_message_id = models.CharField(max_length=255, null=True)  # noqa: DJ001 - set by provider transports only
    # The transport of the last attempt; null without named transports.
    transport = models.CharField(max_length=30, null=True)  # noqa: DJ001
    # Null if its message goes to the address itself (docs/decisions/0387).
    diversion = models.CharField(  # noqa: DJ001
        max_length=10, choices=[(one.value, one.value) for one in Diversion], null=True
    )
    receiver = models.CharField(  # noqa: DJ001
        max_length=253,
        null=True,
        help_text=(
            "The organisation that runs the recipient's mail host, such as `google`, or the registrable domain of the "
            "host; null until it is known."
        ),
    )

    class Meta:
        indexes = [
            # The address never changes.
            models.Index(Lower("address"), models.F("email"), name="recipient_by_address"),
            # Set once, and only by the provider transport; the updates of the others stay in their page.
            models.Index(
                fields=["provider_message_id"],
                condition=~models.Q(provider_message_id=None),
                name="recipient_of_provider",
            ),
        ]
        ordering = ["position"]

    def __str__(self) -> str:
        return self.address

    def has_reached(self, time: str) -> bool:
        """Return whether the event of a time column has happened, also if its time is not stored.

        See docs/decisions/0376.
        """
        is_read = self.state in {EmailStatus.OPENED, EmailStatus.CLICKED}
        return getattr(self, time) is not None or (is_read and time in TRANSITIONS[EmailStatus(self.state)].times)


class QueueEntry(models.Model):
    """A queue entry: one narrow row while a recipient has work left, deleted at its final status."""

    recipient = models.OneToOneField(Recipient, primary_key=True, on_delete=models.CASCADE)
    workspace_id = IdField("ws_")
    domain = models.CharField(max_length=253, help_text="domain of the recipient")
    stage = models.PositiveSmallIntegerField(choices=Stage.choices)
    # The number of the stream in a held entry: all entries of a stream are found by it.
    rank = models.SmallIntegerField(default=NORMAL_RANK, db_default=NORMAL_RANK, help_text="priority of its stream")
    due_at = models.DateTimeField(
        help_text="end of the wait or the lease; of a held entry, the time it was held; of a paced one, its last time"
    )
    since = models.DateTimeField(
        help_text="time it was first due, later by the time it was held; its age counts from here"
    )
    fence = models.PositiveIntegerField(default=0, help_text="incremented by every claim")
    attempts = models.PositiveSmallIntegerField(default=0)
    lost = models.PositiveSmallIntegerField(db_default=0, help_text="consecutive claims that ended without an outcome")
    parked = models.PositiveSmallIntegerField(db_default=0, help_text="consecutive claims that were parked by a limit")
    handed_to = models.CharField(  # noqa: DJ001 - null without named transports
        max_length=30, null=True, help_text="the transport that has or may have the message (emails.sending.queue)"
    )
    # The WaitCause for which it is parked; null once it is claimed.
    waits_for = models.CharField(max_length=20, null=True)  # noqa: DJ001
    # The number of the ReceiverPace for which it waits or, once it is ready, for which it was released.
    pair = models.IntegerField(null=True)
    # With paced_since and without a pair, it has waited for as long as its route permits.
    paced_since = models.DateTimeField(null=True, help_text="when it began to wait for a pace, until an attempt")
    expires_at = models.DateTimeField(null=True, help_text="that of its email")

    class Meta:
        db_table = "emails_pending"
        indexes = [
            models.Index(
                fields=["workspace_id", "rank", "due_at"], condition=Q(stage=Stage.READY), name="pending_ready_by_rank"
            ),
            models.Index(
                fields=["due_at"],
                condition=Q(stage__in=[Stage.WAITING, Stage.LEASED, Stage.SCHEDULED, Stage.PACED]),
                name="pending_timed",
            ),
            models.Index(
                fields=["pair", "workspace_id", "rank", "since"], condition=Q(stage=Stage.PACED), name="pending_paced"
            ),
            models.Index(fields=["workspace_id", "rank", "due_at"], condition=Q(stage=Stage.HELD), name="pending_held"),
            # Set once; entries without an expiry write nothing to it (emails.sending.expiry).
            models.Index(fields=["expires_at"], condition=Q(expires_at__isnull=False), name="pending_expiring"),
            # For emails.queue_stats only. A scheduled email has its time in the first row's due_at and in every since.
            models.Index(fields=["workspace_id"], condition=Q(stage=Stage.LEASED), name="pending_leased"),
            models.Index(fields=["workspace_id", "due_at"], condition=Q(stage=Stage.WAITING), name="pending_waiting"),
            models.Index(
                fields=["workspace_id", "since"], condition=Q(stage=Stage.SCHEDULED), name="pending_scheduled"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.recipient_id} ({self.get_stage_display()})"


class CapWindow(models.Model):
    """The emails of a recipient that count for a cap (emails.recipient_caps), until its time is over.

    id: a digest of the cap's owner, its seconds, the address and the template.
    uses: times in seconds since the epoch, by the number of the recipient.
    """

    id = models.UUIDField(primary_key=True, editable=False)
    uses = models.JSONField(default=dict)
    expires_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return str(self.id)


class ReceiverPace(models.Model):
    """The pace of a source at a receiver, shared by all workers (docs/decisions/0362).

    Only emails.pacing.paces, emails.receivers and emails.sources.returning change its fields.
    """

    id = models.AutoField(primary_key=True)
    source = models.CharField(max_length=100, help_text="addresses that are connected from; empty for the system's")
    receiver = models.CharField(max_length=253, help_text="key of core.delivery.receivers")
    # Both belong to core.delivery.pacing.pairs.Pair.
    pace = models.JSONField(default=dict)
    leases = models.JSONField(default=dict)
    updated_at = models.DateTimeField(db_default=Now())
    release_at = models.DateTimeField(null=True, help_text="when waiting entries are released next; null without any")
    pinned = models.FloatField(null=True, help_text="messages a minute, set by the staff")
    stopped_at = models.DateTimeField(null=True, help_text="since when the staff has suspended it")
    day = models.DateField(null=True, help_text="the UTC day of the counts")
    accepted = models.PositiveIntegerField(db_default=0)
    slowed = models.PositiveIntegerField(db_default=0, help_text="signals")
    signal_at = models.DateTimeField(null=True)
    signal = models.CharField(max_length=1100, db_default="", help_text="reply of the last signal, safe to show")
    accepted_before = models.PositiveIntegerField(db_default=0, help_text="on the day before")
    began_on = models.DateField(null=True, help_text="first UTC day at the receiver, of an address that is new")
    reserved = models.JSONField(null=True, help_text="messages of leases; null without any")
    former_rate = models.FloatField(null=True, help_text="messages a minute before the address was listed; null if not")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["source", "receiver"], name="one_pace_for_a_pair")]
        indexes = [models.Index(fields=["release_at"], condition=Q(release_at__isnull=False), name="pace_release")]

    def __str__(self) -> str:
        return f"{self.receiver} from {self.source or 'any address'}"

    @property
    def key(self) -> PairKey:
        return PairKey(self.source, self.receiver)

    @property
    def pair(self) -> Pair:
        """Return the stored state."""
        return Pair.from_json(
            self.pace,
            self.leases,
            self.reserved or {},
            updated_at=self.updated_at.timestamp(),
            pinned=self.pinned,
            is_stopped=self.stopped_at is not None,
            volume=Volume(self.day, self.accepted, self.accepted_before, self.began_on),
            former_rate=self.former_rate,
        )


class HitCount(models.Model):
    """The number of times a recipient loaded the pixel or followed one link. The first ones are also events."""

    pk = models.CompositePrimaryKey("recipient_id", "link")
    # A database constraint cascades (migration 0005), so raw SQL that deletes recipients deletes these rows, too.
    recipient = models.ForeignKey(Recipient, on_delete=models.CASCADE, db_index=False, db_constraint=False)
    link = models.UUIDField(help_text="hash of the target URL; of an empty string for the pixel")
    hits = models.PositiveIntegerField()

    def __str__(self) -> str:
        return f"{self.recipient_id} {self.hits}"


class SendingPause(models.Model):
    """A row that stops every worker from claiming emails while it exists (docs/decisions/0060)."""

    # At most one row.
    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    since = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "emails_hold"
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="one_hold")]

    def __str__(self) -> str:
        return f"since {self.since}"


class PastSendingPause(models.Model):
    """An ended pause: email that was in the queue when it began may have been sent before (docs/decisions/0092)."""

    since = models.DateTimeField(editable=False)
    until = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "emails_past_hold"

    def __str__(self) -> str:
        return f"from {self.since} until {self.until}"


class TransportUse(models.Model):
    """The state of a transport that the processes share (docs/decisions/0216); `default` is that of no file.

    used: messages assigned to it on the day used_on (UTC), less those that it has certainly not taken; only with a
    daily limit.
    paused_notice_at, resumed_notice_at: times of the last emails to the staff.
    listings: the time of the last one about each block list that has its address, in RFC 3339 (docs/decisions/0278).
    """

    name = models.CharField(max_length=30, primary_key=True)
    drained_at = models.DateTimeField(null=True)
    used_on = models.DateField(null=True)
    used = models.PositiveIntegerField(default=0, db_default=0)
    paused_notice_at = models.DateTimeField(null=True)
    resumed_notice_at = models.DateTimeField(null=True)
    listings = models.JSONField(null=True)

    class Meta:
        db_table = "emails_transport"

    def __str__(self) -> str:
        return self.name


class MtaStsPolicyQuerySet(models.QuerySet["MtaStsPolicy"]):
    def in_force(self) -> Self:
        """Return the policies that ask for something, those that could not be read again first."""
        live = self.filter(mode__in=["enforce", "testing"], expires_at__gt=Now())
        return live.order_by(models.Case(models.When(error="", then=1), default=0), "domain")


class MtaStsPolicy(models.Model):
    """The MTA-STS policy of a recipient domain (docs/decisions/0396). Only emails.tls_policies.store writes it.

    mode: of the policy; empty for a domain without one.
    mx: the names of mail hosts that it permits.
    max_age: in seconds, a year at most.
    record_id: of the TXT record, which changes with the policy.
    checked_at: the last lookup of the record.
    error: why this lookup or the fetch after it failed, empty if neither did.
    failure: the result of a failed fetch in TLS reports (core.delivery.bounces.replies.TlsResult).
    report_to: the URI to which the domain wants TLS reports (docs/decisions/0399); empty if it asks for none.
    tlsa: the DANE records of its mail hosts at the last lookup, for the reports.
    """

    domain = models.CharField(max_length=253, primary_key=True)
    mode = models.CharField(max_length=7, choices=[(mode.value, mode.value) for mode in StsMode], blank=True)
    mx = ArrayField(models.CharField(max_length=255))
    max_age = models.PositiveIntegerField()
    record_id = models.CharField(max_length=32, blank=True)
    error = models.CharField(max_length=1000, blank=True)
    failure = models.CharField(max_length=40, blank=True, default="", db_default="")
    report_to = models.CharField(max_length=500, blank=True, default="", db_default="")
    tlsa = ArrayField(models.CharField(max_length=500), default=list, db_default=[])
    checked_at = models.DateTimeField()
    fetched_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)

    objects = MtaStsPolicyQuerySet.as_manager()

    class Meta:
        db_table = "emails_sts_policy"
        verbose_name_plural = "MTA-STS policies"
        indexes = [
            models.Index(fields=["fetched_at"], condition=Q(mode__in=["enforce", "testing"]), name="sts_policy_fetched")
        ]

    def __str__(self) -> str:
        return self.domain


class WatchedSource(models.Model):
    """An own address that email is sent from, which is looked up hourly (docs/decisions/0349).

    looked_up_at: the last time, also if lookups failed.
    reverse_status, reverse_names: as of reverse_checked_at; empty until a lookup worked.
    reverse_error: of the last lookup, empty if it worked.
    """

    address = models.GenericIPAddressField(unique=True)
    looked_up_at = models.DateTimeField(null=True)
    reverse_status = models.CharField(
        max_length=11, choices=[(status.value, status.value) for status in ReverseStatus], blank=True
    )
    reverse_names = ArrayField(models.CharField(max_length=253), default=list)
    reverse_checked_at = models.DateTimeField(null=True)
    reverse_error = models.CharField(max_length=500, blank=True)

    class Meta:
        db_table = "emails_watched_source"

    def __str__(self) -> str:
        return self.address

    def note_reverse_name(self, found: ReverseName, *, at: datetime) -> None:
        """Take over the result of a lookup, without saving; one that failed keeps the former status."""
        self.looked_up_at, self.reverse_error = at, found.error[:500]
        if found.status:
            self.reverse_status, self.reverse_names, self.reverse_checked_at = found.status, [*found.names], at


class SourceListingQuerySet(models.QuerySet["SourceListing"]):
    """Listings of the addresses and block lists of the settings, by address and list."""

    def of(self, addresses: Collection[str], *, lists: Collection[str]) -> Self:
        listings = self.filter(source__address__in=addresses, name__in=lists)
        return listings.select_related("source").order_by("source__address", "name")

    def listed(self) -> Self:
        return self.exclude(listed_at=None)


class SourceListing(models.Model):
    """The answer of a block list about an own address (docs/decisions/0349).

    name: that of the list, without the key of a customer.
    listed_at: since when it has the address; None if it does not, or has not answered yet.
    checked_at: its last usable answer.
    codes, text: of this answer; text is the word of a stranger.
    error: why the last lookup failed, empty if it worked.
    notified_at: the last email to the staff.
    """

    source = models.ForeignKey(WatchedSource, on_delete=models.CASCADE, related_name="listings")
    name = models.CharField(max_length=253)
    listed_at = models.DateTimeField(null=True)
    checked_at = models.DateTimeField(null=True)
    codes = models.CharField(max_length=200, blank=True)
    text = models.CharField(max_length=500, blank=True)
    error = models.CharField(max_length=500, blank=True)
    notified_at = models.DateTimeField(null=True)

    objects = SourceListingQuerySet.as_manager()

    class Meta:
        db_table = "emails_source_listing"
        constraints = [models.UniqueConstraint(fields=["source", "name"], name="listing_of_source")]

    def __str__(self) -> str:
        return f"{self.source}: {self.name}"

    @property
    def removal_url(self) -> str:
        return removal_url(self.name, self.source.address)

    def note_answer(self, answer: ListingAnswer, *, at: datetime) -> bool:
        """Take over an answer, without saving; return whether it is a new listing that the staff must know of.

        A failed lookup keeps the former answer. An address that comes and goes is reported once a day.
        """
        self.error = answer.error[:500]
        if answer.is_listed is None:
            return False
        is_new = answer.is_listed and not self.listed_at
        self.listed_at = (self.listed_at or at) if answer.is_listed else None
        self.checked_at, self.codes, self.text = at, ", ".join(answer.codes)[:200], answer.text
        if not is_new or (self.notified_at and at - self.notified_at < NOTICE_EVERY):
            return False
        self.notified_at = at
        return True
