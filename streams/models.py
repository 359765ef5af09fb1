"""Streams: named kinds of email of a workspace, each with its own unsubscribes and complaints.

See docs/decisions/0176.
"""

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy

from core.lib.coded_texts import restore_text
from core.lib.model_fields import IdField
from core.lib.translation import translated_choices
from core.workspaces.models import APPROVAL_REQUIRED, Workspace

# The stream of every email that names none. It has a row only after it was changed.
MAIN = "main"
# Values of Stream.rank.
NORMAL_RANK, LAST_RANK = 1, 2


def stream_kinds() -> list[tuple[str, Any]]:
    """Return the choices of Stream.kind: a function, so that a new kind needs no migration."""
    return translated_choices(Stream.Kind)


def unsubscribe_choices() -> list[tuple[str, Any]]:
    return translated_choices(Stream.Unsubscribe)


def stream_scopes() -> list[tuple[str, Any]]:
    return translated_choices(Stream.SuppressionScope)


def stream_priorities() -> list[tuple[str, Any]]:
    return translated_choices(Stream.Priority)


def tracking_details() -> list[tuple[str, Any]]:
    return translated_choices(Stream.TrackingDetail)


def transport_route_choices(workspace_id: str) -> list[tuple[str, Any]]:
    """Return the values of Stream.transport_route that a workspace may use, the usual one first."""
    return [("", gettext_lazy("Usual")), *((name, name) for name in settings.TRANSPORTS.routes_of(workspace_id))]


class Stream(models.Model):
    """A stream.

    slug: its id on the wire.
    number: its id in SendGrid's dialect.
    """

    class Kind(models.TextChoices):
        TRANSACTIONAL = "transactional"
        BULK = "bulk"

    class Unsubscribe(models.TextChoices):
        """The form of the unsubscribe link.

        LINK: a footer and List-Unsubscribe headers.
        HEADERS: List-Unsubscribe headers only.
        NONE: neither.
        """

        LINK = "link"
        HEADERS = "headers"
        NONE = "none"

    class SuppressionScope(models.TextChoices):
        """Whether unsubscribes and complaints block the stream or the workspace."""

        STREAM = "stream"
        WORKSPACE = "workspace"

    class Priority(models.TextChoices):
        """The order within the workspace's share of the queue."""

        HIGH = "high"
        NORMAL = "normal"
        LOW = "low"

    class TrackingDetail(models.TextChoices):
        """The facts that are stored about an open or a click (docs/decisions/0376)."""

        FULL = "full"
        COARSE = "coarse"
        COUNTS = "counts"

    id = IdField("str_", primary_key=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="streams", db_index=False)
    slug = models.CharField(max_length=40, editable=False, help_text="The id of the stream, as `stream` of an email.")
    number = models.PositiveSmallIntegerField(editable=False, default=0)
    name = models.CharField(max_length=100, help_text="The name of the stream. Recipients see it.")
    description = models.CharField(
        max_length=500,
        blank=True,
        default="",
        help_text="What the stream is for. Recipients see it if the stream is public.",
    )
    kind = models.CharField(
        max_length=16,
        choices=stream_kinds,
        default=Kind.TRANSACTIONAL,
        help_text="`transactional`, or `bulk` for newsletters and announcements.",
    )
    unsubscribe = models.CharField(
        max_length=16,
        choices=unsubscribe_choices,
        default=Unsubscribe.LINK,
        help_text="`link`: a link in the footer and List-Unsubscribe headers. `headers`: only the headers. "
        "`none`: neither, for transactional streams only.",
    )
    scope = models.CharField(
        max_length=16,
        choices=stream_scopes,
        default=SuppressionScope.STREAM,
        help_text="Whether an unsubscribe or a complaint blocks this stream or the whole workspace.",
    )
    own_bounces = models.BooleanField(
        default=False, help_text="Whether a hard bounce blocks this stream only, instead of the workspace."
    )
    ignores_unsubscribes = models.BooleanField(
        default=False,
        help_text="Whether the stream also reaches addresses that unsubscribed from the whole workspace. "
        "Bounces, complaints and manual suppressions always block.",
    )
    public = models.BooleanField(default=False, help_text="Whether the preference page of recipients lists the stream.")
    priority = models.CharField(
        max_length=16,
        choices=stream_priorities,
        default=Priority.NORMAL,
        help_text="The order within the workspace's share of the queue.",
    )
    track_opens = models.BooleanField(
        default=True, help_text="Whether opens are tracked, unless an email says otherwise."
    )
    track_clicks = models.BooleanField(
        default=True, help_text="Whether clicks are tracked, unless an email says otherwise."
    )
    # Read with the hits by emails.feedback.opens_and_clicks, so that a change holds for accepted emails at once.
    tracking_detail = models.CharField(
        max_length=16,
        choices=tracking_details,
        default=TrackingDetail.FULL,
        db_default=TrackingDetail.FULL,
        help_text="What is stored about an open or a click. `full`: an event with its time, the URL, and whether it "
        "looks automated. `coarse`: the same without anything that depends on the program of the reader. `counts`: "
        "only that the recipient opened or clicked, without time, order, event and webhook.",
    )
    transport_route = models.CharField(
        max_length=30,
        blank=True,
        default="",
        db_default="",
        help_text="The operator's route of transports; absent for the usual one.",
    )
    # No check constraint, which would need the table scanned: the API limits it to the plan's retention.
    content_retention = models.SmallIntegerField(
        null=True,
        blank=True,
        help_text="The hours after the last outcome for which the content of an email is kept; null as long as the "
        "email.",
    )
    # The time of a change of content_retention that accepted emails do not have yet.
    content_changed_at = models.DateTimeField(null=True, editable=False)
    sensitive = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Whether nobody can read the content of its emails, which is removed after the last outcome.",
    )
    deliver_within = models.IntegerField(
        null=True,
        blank=True,
        help_text="The seconds from acceptance, or from the scheduled time, after which an email that has no expiry of "
        "its own is not sent any more; null for any time.",
    )
    approval = models.CharField(
        max_length=8,
        choices=[(APPROVAL_REQUIRED, APPROVAL_REQUIRED)],
        blank=True,
        default="",
        db_default="",
        help_text="`required`: its emails wait until a person approves them; absent if they do not.",
    )
    archived_at = models.DateTimeField(
        null=True, editable=False, help_text="The time when the stream was archived; null if it accepts emails."
    )
    # Paused by the reputation check or by staff: nothing is accepted, and queued emails wait.
    paused_at = models.DateTimeField(
        null=True, editable=False, help_text="The time when the stream was paused; null if it is not."
    )
    paused_reason = models.CharField(
        max_length=500,
        blank=True,
        default="",
        editable=False,
        help_text="Why the stream is paused; empty if it is not.",
    )
    # The code and values of the reason, unless staff entered it.
    paused_code = models.JSONField(null=True, editable=False)
    # Rates are judged from here after a pause was lifted.
    judged_from = models.DateTimeField(null=True, editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    # Set by streams.counts.add_counts.
    counts: dict[str, int]

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "slug"], name="one_slug_a_workspace")]
        indexes = [
            models.Index(
                fields=["content_changed_at"],
                condition=models.Q(content_changed_at__isnull=False),
                name="stream_changed",
            )
        ]
        ordering = ["created_at", "id"]

    def __str__(self) -> str:
        return self.name

    @property
    def is_main(self) -> bool:
        return self.slug == MAIN

    @property
    def accepts_emails(self) -> bool:
        return not (self.archived_at or self.paused_at)

    @property
    def pause_reason(self) -> str:
        """The reason of a pause, as a text with its code unless staff entered it; empty if there is none."""
        return restore_text(self.paused_code, text=self.paused_reason)

    @property
    def rank(self) -> int:
        """The priority as a number: 0 is claimed first."""
        return [*self.Priority].index(self.Priority(self.priority))

    @property
    def email_defaults(self) -> dict[str, bool]:
        """The options of emails that do not set them."""
        return {"track_opens": self.track_opens, "track_clicks": self.track_clicks}

    def suppressed_stream(self, reason: str) -> str:
        """Return the stream that a suppression with this reason blocks, empty for the whole workspace."""
        is_own = self.own_bounces if reason == "bounce" else self.scope == self.SuppressionScope.STREAM
        return self.slug if is_own else ""


def main_stream(workspace: Workspace) -> Stream:
    """Return the stream `main` as it is without a row."""
    return Stream(
        workspace=workspace,
        slug=MAIN,
        name="Main",
        scope=Stream.SuppressionScope.WORKSPACE,
        created_at=workspace.created_at,
    )
