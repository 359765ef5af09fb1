"""The log of events, its order in the feed, and the progress of the sequencer (docs/decisions/0142).

Only events.recording and the statement that accepts emails write the log, and only events.sequencer the feed.
"""

from typing import Any

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from core.lib.model_fields import IdField, IdNumber
from events.kinds import FAILURE_KINDS, NEXT_TRANSPORT, RARE_KINDS, TRANSPORT, kind_choices


class Event(models.Model):
    """An event of the append-only log, ordered by number. The API shows the id.

    email: None for events of the workspace.
    workspace_id: None in rows of versions before 1.0, whose email has it.
    status: the status of the recipient, else of the email, after the change; None in such rows and for events of the
    workspace.
    """

    number = models.BigAutoField(primary_key=True)
    id = IdField("evt_", help_text="The id of the event, which webhooks send as well.")
    workspace_id: "str | None" = IdField("ws_", null=True)  # type: ignore[misc,assignment]
    email = models.ForeignKey(
        "emails.Email", on_delete=models.CASCADE, null=True, related_name="events", db_index=False
    )
    recipient = models.ForeignKey(
        "emails.Recipient", on_delete=models.CASCADE, null=True, db_index=False, db_constraint=False
    )
    kind = models.CharField(max_length=32, choices=kind_choices)
    payload = models.JSONField()
    status = models.CharField(max_length=10, null=True)  # noqa: DJ001 - unknown in rows of versions before 1.0
    created_at = models.DateTimeField()

    class Meta:
        db_table = "emails_event"
        indexes = [
            models.Index(fields=["email", "number"], name="event_timeline"),
            # For the filter of the email list. The other kinds are so frequent that an index would not help.
            models.Index(fields=["kind", "email"], condition=Q(kind__in=RARE_KINDS), name="event_rare"),
            # The newest bounces, deferrals or failures of a workspace (docs/decisions/0248).
            models.Index(
                fields=["workspace_id", "kind", "created_at"],
                condition=Q(kind__in=FAILURE_KINDS),
                name="event_failure",
            ),
            # For lookups by the number of an id (core.lib.ids.id_number), the only one that some clients can store.
            models.Index(IdNumber("id"), condition=Q(kind__in=RARE_KINDS), name="event_bounce_number"),
            models.Index(fields=["workspace_id", "created_at"], condition=Q(email=None), name="event_workspace_age"),
        ]
        ordering = ["number"]

    def __str__(self) -> str:
        return self.kind

    @property
    def data(self) -> dict[str, Any]:
        """The event's data in the feed and in webhooks: its email, then its payload."""
        email: Any = self.email
        about = email.event_fields(self.status, recipient_id=self.recipient_id) if email else {}
        return {**about, **self.shown_payload}

    @property
    def shown_payload(self) -> dict[str, Any]:
        """The payload as a workspace sees it: the names of transports only if the operator shows them."""
        payload: dict[str, Any] = self.payload
        if settings.SHOW_TRANSPORTS:
            return payload
        return {name: value for name, value in payload.items() if name not in (TRANSPORT, NEXT_TRANSPORT)}


class FeedEntry(models.Model):
    """The position of one event in the feed of its workspace.

    Positions increase in the order in which the entries become visible, so a reader never misses a late one. The entry
    of a deleted event stays until retention deletes it. number: of the event; the negated one if the source is
    `workspaces`, the table in which versions before 1.0 kept events of workspaces (events.former_sequencer).
    """

    pk = models.CompositePrimaryKey("workspace_id", "position")
    workspace_id = IdField("ws_")
    position = models.BigIntegerField()
    source = models.CharField(max_length=10)
    number = models.BigIntegerField()
    recorded_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["position"], name="feed_position")]

    def __str__(self) -> str:
        return f"{self.source} {self.number}"


class FeedHead(models.Model):
    """The highest position. The only row; its lock makes one process the sequencer."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    position = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return str(self.position)


class FeedProgress(models.Model):
    """The numbers of the log that are not in the feed yet: those above `last`, and two multiranges of gaps.

    A gap is a number that an uncommitted transaction may use.
    gaps: gaps whose possible writers were `writers`, as virtual transaction ids.
    new_gaps: gaps found since.
    source: `log`; `former` for the table of versions before 1.0; others are explained in events.former_sequencer.
    """

    source = models.CharField(max_length=10, primary_key=True)
    last = models.BigIntegerField(default=0)
    gaps = models.TextField(default="{}")
    new_gaps = models.TextField(default="{}")
    writers = ArrayField(models.TextField(), default=list)

    def __str__(self) -> str:
        return f"{self.source} {self.last}"
