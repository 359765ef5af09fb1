"""Received emails, the routes and blocks that decide about them, and their shared content (docs/decisions/0225)."""

from typing import Any, Self

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now

from core.lib.model_fields import IdField
from core.lib.translation import translated_choices
from core.workspaces.api.scopes import Scope
from core.workspaces.key_limits import KeyLimits, LimitedQuerySet
from core.workspaces.models import Workspace
from emails.models import Email
from receiving.states import MAX_JOINT_CLAIMS, SMALL_BYTES, UNREAD_ERRORS, Automatic, ReceivedStatus

# InboundRoute.domain of the workspace's address at RECEIVING_DOMAIN.
SHARED = "shared"


def route_actions() -> list[tuple[str, Any]]:
    """Return the choices of InboundRoute.action: a function, so that a new action needs no migration."""
    return translated_choices(InboundRoute.RouteAction)


def attachment_forms() -> list[tuple[str, Any]]:
    return translated_choices(InboundRoute.AttachmentForm)


def received_statuses() -> list[tuple[str, Any]]:
    return translated_choices(ReceivedStatus)


def automatic_kinds() -> list[tuple[str, Any]]:
    return translated_choices(Automatic)


class InboundRoute(models.Model):
    """The rule for recipient addresses of a workspace: the first one that matches decides (receiving.arrival.routing).

    domain: a receiving domain, or SHARED.
    match: a glob of the local part in lower case.
    literals: the number of literal characters in match.
    store_days: None for the retention of the plan.
    """

    class RouteAction(models.TextChoices):
        DELIVER = "deliver"
        REJECT = "reject"
        DISCARD = "discard"

    class AttachmentForm(models.TextChoices):
        LINK = "link"
        INLINE = "inline"

    id = IdField("rt_", primary_key=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="routes", db_index=False)
    name = models.CharField(max_length=100, help_text="The name of the route.")
    domain = models.CharField(
        max_length=253,
        help_text="A receiving domain of the workspace, or `shared` for its address at the domain of the service.",
    )
    match = models.CharField(
        max_length=64,
        help_text="The local parts that match, in lower case: literals, `?` for one character and `*` for any, such as "
        "`support*`.",
    )
    literals = models.PositiveSmallIntegerField(editable=False)
    priority = models.PositiveSmallIntegerField(
        default=100,
        help_text="Routes with a lower number come first; then those with more literal characters; then older ones.",
    )
    action = models.CharField(
        max_length=16,
        choices=route_actions,
        default=RouteAction.DELIVER,
        help_text="`deliver`; `reject` refuses the recipient; `discard` accepts the message and keeps nothing.",
    )
    webhook_ids = ArrayField(
        models.CharField(max_length=26),
        default=list,
        blank=True,
        help_text="The webhooks that get `received`; empty for all that subscribe to it.",
    )
    forward_to = ArrayField(
        models.CharField(max_length=254),
        default=list,
        db_default=[],
        blank=True,
        help_text="The addresses to which email is forwarded, at most 5. Each one has to confirm it first: with "
        "`forward_not_confirmed`, a link was sent to it.",
    )
    attachments = models.CharField(
        max_length=16,
        choices=attachment_forms,
        default=AttachmentForm.LINK,
        help_text="Whether attachments are links or part of the body, in formats that allow both.",
    )
    include_raw = models.BooleanField(
        default=False, help_text="Whether the source of the message is part of the body, in formats that have it."
    )
    require_authenticated = models.BooleanField(
        default=False, help_text="Whether a message is blocked unless it is proven to come from the domain of its From."
    )
    spam_above = models.FloatField(
        null=True, blank=True, help_text="The lowest spam score with which a message is blocked; null for none."
    )
    # Whether bodies have the score of the spam filter, in a format whose settings can switch it off.
    spam_report = models.BooleanField(default=True, db_default=True, editable=False)
    replies_only = models.BooleanField(
        default=False, help_text="Whether a message is blocked unless it answers an email of the workspace."
    )
    store_days = models.PositiveSmallIntegerField(
        null=True,
        blank=True,
        help_text="The days for which messages are kept; null for as long as the plan allows, 0 until they are "
        "delivered.",
    )
    active = models.BooleanField(default=True, help_text="Whether the route is used.")
    created_at = models.DateTimeField(
        db_default=Now(), editable=False, help_text="The time when the route was created."
    )

    class Meta:
        indexes = [models.Index(fields=["workspace", "domain"], name="route_of_domain")]
        ordering = ["priority", "-literals", "created_at", "id"]

    def __str__(self) -> str:
        return self.name


class SenderBlock(models.Model):
    """A sender, an address or a domain in lower case, from which a workspace receives nothing."""

    id = IdField("blk_", primary_key=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="sender_blocks", db_index=False)
    sender = models.CharField(max_length=254, help_text="The address or the domain, in lower case.")
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "sender"], name="one_block_a_sender")]
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return self.sender


class ForwardTarget(models.Model):
    """An address that a workspace wants to forward to, in the form in which addresses are compared.

    confirmed_at: None until it has agreed (receiving.forwarding.targets).
    """

    id = IdField("fwt_", primary_key=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="forward_targets", db_index=False)
    address = models.CharField(max_length=254)
    link_sent_at = models.DateTimeField(null=True, editable=False)
    confirmed_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "address"], name="one_target_an_address")]
        indexes = [models.Index(fields=["address"], name="forward_target_address")]

    def __str__(self) -> str:
        return self.address


class SharedAddress(models.Model):
    """The address of a workspace at RECEIVING_DOMAIN. local_part: 12 random characters, a-z."""

    workspace = models.OneToOneField(
        Workspace, on_delete=models.CASCADE, primary_key=True, related_name="shared_address"
    )
    local_part = models.CharField(max_length=12, unique=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    def __str__(self) -> str:
        return self.local_part


class ReceivingUsage(models.Model):
    """The bytes that a workspace stores, and the messages that it received on one day, UTC."""

    workspace = models.OneToOneField(
        Workspace, on_delete=models.CASCADE, primary_key=True, related_name="receiving_usage"
    )
    stored_bytes = models.BigIntegerField(default=0)
    day = models.DateField()
    messages = models.PositiveIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.day}: {self.messages}"


class NetworkUsage(models.Model):
    """The part of ReceivingUsage that is from one network, a /24 of IPv4 or a /48 of IPv6 (docs/decisions/0296)."""

    workspace = models.ForeignKey(
        Workspace, on_delete=models.CASCADE, related_name="receiving_networks", db_index=False
    )
    network = models.CharField(max_length=43)
    stored_bytes = models.BigIntegerField(default=0)
    day = models.DateField()
    messages = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "network"], name="one_usage_a_network")]

    def __str__(self) -> str:
        return f"{self.network} {self.day}: {self.messages}"


class ReceivedContent(models.Model):
    """The bytes of a message, read and written only by receiving.content."""

    id = IdField("rcc_", primary_key=True)
    size = models.PositiveIntegerField(help_text="bytes")
    data = models.BinaryField()

    class Meta:
        db_table = "receiving_content"

    def __str__(self) -> str:
        return self.id


class Message(models.Model):
    """A message as one SMTP transaction brought it: its envelope without recipients, its content, and its reading.

    The received emails of its recipients share it, so nothing here may name a recipient of the envelope.
    workspace_id, due_at, fence, attempts: of the queue of messages to read, until read_at; the workspace whose share it
    uses is that of one of its recipients.
    reread_at: when it was queued again because it could not be read.
    trace: our Received field.
    authentication: the verdicts; None before them.
    spam: the result of RSPAMD_URL; None without one.
    sender: the address in From, in lower case.
    """

    Automatic = Automatic

    id = IdField("msg_", primary_key=True)
    content_id = IdField("rcc_")
    sha256 = models.BinaryField(max_length=32)
    size = models.PositiveIntegerField(help_text="bytes")
    envelope_from = models.CharField(max_length=320)
    remote_ip = models.GenericIPAddressField(null=True)
    helo = models.CharField(max_length=255, blank=True)
    tls = models.CharField(max_length=16, blank=True)
    trace = models.TextField()
    is_test = models.BooleanField(default=False)
    workspace_id = IdField("ws_")
    received_at = models.DateTimeField(db_default=Now(), editable=False)
    due_at = models.DateTimeField(db_default=Now(), editable=False)
    fence = models.PositiveIntegerField(db_default=0, editable=False)
    attempts = models.PositiveSmallIntegerField(db_default=0, editable=False)
    read_at = models.DateTimeField(null=True, editable=False)
    reread_at = models.DateTimeField(null=True, editable=False)
    # The reading.
    subject = models.TextField(blank=True, default="")
    sender = models.CharField(max_length=320, blank=True, default="")
    addresses = models.JSONField(default=dict, help_text="from, to, cc, replyTo")
    date = models.DateTimeField(null=True)
    message_id = models.TextField(blank=True, default="")
    in_reply_to = models.TextField(blank=True, default="")
    references = ArrayField(models.TextField(), default=list)
    text = models.TextField(blank=True, default="")
    text_generated = models.BooleanField(default=False)
    reply_text = models.TextField(null=True)  # noqa: DJ001 - null on the wire, too
    html = models.TextField(blank=True, default="")
    truncated = ArrayField(models.CharField(max_length=16), default=list)
    headers = models.JSONField(default=list)
    attachments = models.JSONField(default=list)
    automatic = models.CharField(max_length=16, choices=automatic_kinds, default=Automatic.NO)
    parse_errors = ArrayField(models.TextField(), default=list)
    authentication = models.JSONField(null=True)
    spam = models.JSONField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["due_at"], condition=Q(read_at=None), name="message_due"),
            models.Index(
                fields=["workspace_id", "due_at"],
                condition=Q(read_at=None, size__lte=SMALL_BYTES),
                name="message_small",
            ),
            models.Index(
                fields=["workspace_id", "due_at"],
                condition=Q(read_at=None, size__gt=SMALL_BYTES),
                name="message_large",
            ),
            models.Index(
                fields=["due_at"], condition=Q(read_at=None, attempts__gte=MAX_JOINT_CLAIMS), name="message_alone"
            ),
            models.Index(fields=["sha256", "received_at"], name="message_repeated"),
        ]
        ordering = ["-received_at", "-id"]

    def __str__(self) -> str:
        return self.subject

    @property
    def is_unread(self) -> bool:
        """Whether it could not be read to its end: it took too long, or ended the workers that tried to."""
        return any(error in UNREAD_ERRORS for error in self.parse_errors)


# What a list does not show, up to 15 MiB of each message.
LARGE_COLUMNS = ("text", "html", "reply_text", "headers", "trace")


class ReceivedEmailQuerySet(LimitedQuerySet["ReceivedEmail"]):
    def within(self, limits: KeyLimits, *, workspace_id: str) -> Self:
        """Return the emails that a key reads: a test key simulated ones, a key with limits none."""
        if limits.is_test:
            return self.filter(is_test=True)
        return self.none() if limits.restricts_emails else self

    def for_scope(self, scope: str, limits: KeyLimits) -> Self:
        """Return the emails that a key with a scope reads.

        The key of a website that sends shows nothing that others wrote to the workspace.
        """
        return self.none() if scope == Scope.SENDING_ACCESS and not limits.is_test else self

    def with_replies(self) -> Self:
        """Annotate with whether the sent email that each one answers still exists."""
        return self.annotate(answers_existing=Exists(Email.objects.filter(pk=OuterRef("reply_email_id"))))

    def without_content(self) -> Self:
        return self.select_related("message").defer(*(f"message__{name}" for name in LARGE_COLUMNS))


class ReceivedEmail(models.Model):
    """A message that one recipient address of a workspace received.

    route_id: None for a reply address and the shared address without a route.
    tag: the part after the first plus sign.
    sender and subject: of the message, for filters; sender is in lower case.
    reply_*: the sent email that it answers (receiving.answers.matching); the columns outlive the email.
    inlines_files, includes_raw: of its route, for webhooks with its content.
    store_days: 0 if it is deleted when its deliveries have ended.
    event_id: the id of its event `received` in the log.
    unread_event_id: of the one before it, if the message could not be read then (docs/decisions/0277).
    forward_due_at, forward_attempts: of the queue of emails to forward by their route (docs/decisions/0281).
    processed_at: when it was published or blocked; of one to forward, when that was done.
    """

    class MatchedBy(models.TextChoices):
        ADDRESS = "address"
        MESSAGE_ID = "message_id"

    id = IdField("inb_", primary_key=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="received_emails", db_index=False)
    message = models.ForeignKey(Message, on_delete=models.CASCADE, related_name="emails")
    route_id = IdField("rt_", null=True)  # type: ignore[misc]
    recipient = models.CharField(max_length=320)
    tag = models.CharField(max_length=64, blank=True, default="")
    status = models.CharField(max_length=16, choices=received_statuses, default=ReceivedStatus.STORED)
    blocked_reason = models.CharField(max_length=32, blank=True, default="")
    sender = models.CharField(max_length=320, blank=True, default="")
    subject = models.TextField(blank=True, default="")
    size = models.PositiveIntegerField(help_text="bytes")
    is_test = models.BooleanField(default=False)
    reply_email_id = IdField(null=True)  # type: ignore[misc]
    reply_recipient_id = IdField(null=True)  # type: ignore[misc]
    reply_address = models.CharField(max_length=254, blank=True, default="")
    reply_matched_by = models.CharField(max_length=16, choices=MatchedBy.choices, blank=True, default="")
    is_from_recipient = models.BooleanField(default=False)
    inlines_files = models.BooleanField(default=False, db_default=False)
    includes_raw = models.BooleanField(default=False, db_default=False)
    store_days = models.PositiveSmallIntegerField()
    received_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField()
    processed_at = models.DateTimeField(null=True)
    forward_due_at = models.DateTimeField(null=True, editable=False)
    forward_attempts = models.SmallIntegerField(db_default=0, editable=False)
    event_id = IdField("evt_", null=True)  # type: ignore[misc]
    unread_event_id = IdField("evt_", null=True)  # type: ignore[misc]

    objects = ReceivedEmailQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["workspace", "-received_at", "-id"], name="received_newest"),
            models.Index(fields=["workspace", "expires_at"], name="received_expiry"),
            models.Index(fields=["reply_email_id"], condition=~Q(reply_email_id=None), name="received_reply_to"),
            models.Index(
                fields=["reply_recipient_id"], condition=~Q(reply_recipient_id=None), name="received_reply_of"
            ),
            models.Index(
                fields=["processed_at"], condition=Q(store_days=0) & ~Q(processed_at=None), name="received_not_kept"
            ),
            models.Index(fields=["forward_due_at"], condition=~Q(forward_due_at=None), name="received_to_forward"),
        ]
        ordering = ["-received_at", "-id"]

    def __str__(self) -> str:
        return self.recipient


class Forward(models.Model):
    """A forward of a received email to one address. error: the code of the problem; empty if sent_email_id was sent."""

    id = IdField("fwd_", primary_key=True)
    email = models.ForeignKey(ReceivedEmail, on_delete=models.CASCADE, related_name="forwards")
    route_id = IdField("rt_", null=True)  # type: ignore[misc]
    address = models.CharField(max_length=254, help_text="The address.")
    sent_email_id = IdField(null=True, help_text="The id of the sent email; null if it was not sent.")  # type: ignore[misc]
    error = models.CharField(
        max_length=40,
        blank=True,
        default="",
        help_text="The code of the problem of sending it, `own_domain` or `daily_limit`; null if it was sent.",
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False, help_text="The time when the forward was made.")

    class Meta:
        indexes = [models.Index(fields=["route_id", "created_at"], name="forward_of_route")]
        ordering = ["created_at", "id"]

    def __str__(self) -> str:
        return self.address
