"""Webhook endpoints, their events and deliveries, and the delivery queue.

Events, deliveries and queue entries are many and short-lived. They have no foreign-key constraints, which would cost
more than the rest of the insert. The services of this app keep them consistent, and a claim discards queue entries
whose endpoint is gone (docs/decisions/0034).
"""

import json
import logging
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Self

from cryptography.exceptions import InvalidTag
from django.contrib.postgres.fields import ArrayField
from django.db import connection, models
from django.db.models import Q
from django.db.models.functions import Now

from core.lib.ids import to_uuid
from core.lib.keyring import UnknownKey
from core.lib.model_fields import IdField
from core.lib.sealed import seal, unseal
from core.lib.worker.stages import Stage
from core.workspaces.models import Workspace
from events.kinds import WEBHOOK_KINDS, wire_type
from events.rendering import RenderedEvent
from streams.models import MAIN
from webhooks.formats import STANDARD, find_format, format_choices

log = logging.getLogger("postrider.webhooks")
SEAL_PURPOSE = "webhook-secret"
HEADERS_PURPOSE = "webhook-headers"


def webhook_kind_choices() -> list[tuple[str, str]]:
    """Return the choices of a subscription: a function, so that a new kind needs no migration."""
    return [(kind, kind) for kind in WEBHOOK_KINDS]


DELETE_OLDER_EVENTS = """
WITH old AS (
    SELECT id FROM webhooks_webhookevent WHERE workspace_id = %s AND created_at < %s ORDER BY created_at LIMIT %s
), delivery AS (
    DELETE FROM webhooks_webhookdelivery d USING old WHERE d.event_id = old.id RETURNING d.id
), entry AS (
    DELETE FROM webhooks_pending p USING delivery WHERE p.delivery_id = delivery.id
)
DELETE FROM webhooks_webhookevent e USING old WHERE e.id = old.id
"""
DELETE_EVENTS = """
WITH event AS (
    SELECT id FROM webhooks_webhookevent WHERE id = ANY(%s)
), delivery AS (
    DELETE FROM webhooks_webhookdelivery d USING event WHERE d.event_id = event.id RETURNING d.id
), entry AS (
    DELETE FROM webhooks_pending p USING delivery WHERE p.delivery_id = delivery.id
)
DELETE FROM webhooks_webhookevent e USING event WHERE e.id = event.id
"""


class Webhook(models.Model):
    """An endpoint of a workspace that events are posted to."""

    id = IdField("wh_", primary_key=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="webhooks", db_index=False)
    url = models.TextField(help_text="The URL that receives the events.")
    events = ArrayField(
        models.CharField(max_length=32, choices=webhook_kind_choices),
        help_text="The types of events that the endpoint receives, with or without the prefix `email.`.",
    )
    streams = ArrayField(
        models.CharField(max_length=40),
        default=list,
        db_default=[],
        blank=True,
        help_text="The ids of streams: only events about their emails are delivered. Empty or absent: all of them.",
    )
    format = models.CharField(
        max_length=16,
        choices=format_choices,
        default=STANDARD,
        db_default=STANDARD,
        help_text="The format of the events: that of Postrider, or that of another service.",
    )
    # Further headers of the requests, as a sealed JSON object; empty for none.
    sealed_headers = models.TextField(default="", db_default="", blank=True, editable=False)
    active = models.BooleanField(default=True, help_text="Whether events are delivered.")
    disabled_reason = models.TextField(
        blank=True, default="", help_text="The reason why Postrider disabled the webhook; null if it did not."
    )
    pace = models.PositiveSmallIntegerField(default=4)
    failing_since = models.DateTimeField(null=True, editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        indexes = [models.Index(fields=["workspace", "-created_at", "-id"], name="webhook_newest")]
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return self.url

    @property
    def headers(self) -> dict[str, str]:
        """The further headers of the requests. Raises UnknownKey and InvalidTag if they cannot be unsealed."""
        return unseal_headers(self.sealed_headers, webhook_id=self.id)

    @property
    def readable_headers(self) -> dict[str, str]:
        """The further headers of the requests; none if their key is no longer in APP_KEYS."""
        return open_headers(self.sealed_headers, webhook_id=self.id) or {}

    @property
    def kinds(self) -> list[str]:
        """The events that the endpoint gets: those it subscribed to and has a format for."""
        formatted = find_format(self.format).kinds
        return [kind for kind in self.events if kind in formatted]

    def gets(self, event: RenderedEvent) -> bool:
        """Return whether a new event is delivered: the endpoint subscribes to it, and is older unless it is named."""
        return self.subscribes_to(event) and (bool(event.webhook_ids) or event.created_at >= self.created_at)

    def subscribes_to(self, event: RenderedEvent) -> bool:
        """Return whether the endpoint is subscribed to an event, and gets its stream.

        An event about no email, or about an address in all streams, is about each of them (docs/decisions/0185).
        Endpoints that an event names get it without a subscription.
        """
        if event.webhook_ids:
            return self.id in event.webhook_ids and event.kind in find_format(self.format).kinds
        if event.kind not in self.kinds:
            return False
        stream = event.data.get("stream", MAIN if "emailId" in event.data else None)
        return not self.streams or stream is None or stream in self.streams


def seal_headers(headers: Mapping[str, str], *, webhook_id: str) -> str:
    """Return the further headers of an endpoint as they are stored."""
    return seal(json.dumps(headers).encode(), purpose=HEADERS_PURPOSE, row=webhook_id) if headers else ""


def unseal_headers(sealed: str, *, webhook_id: str) -> dict[str, str]:
    """Return the further headers of an endpoint. Raises UnknownKey and InvalidTag if they cannot be unsealed."""
    return json.loads(unseal(sealed, purpose=HEADERS_PURPOSE, row=webhook_id)) if sealed else {}


def open_headers(sealed: str, *, webhook_id: str) -> dict[str, str] | None:
    """Return the further headers of an endpoint, or None if their key is no longer in APP_KEYS."""
    try:
        return unseal_headers(sealed, webhook_id=webhook_id)
    except (UnknownKey, InvalidTag):
        log.exception("Cannot decrypt the headers of a webhook", extra={"data": {"webhook": webhook_id}})
        return None


class WebhookSecretQuerySet(models.QuerySet["WebhookSecret"]):
    def valid(self) -> Self:
        """Filter to the secrets that are valid now, newest first."""
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=Now())).order_by(
            models.F("expires_at").desc(nulls_first=True)
        )


class WebhookSecret(models.Model):
    """A signing secret, sealed to this row. The newest secret of a webhook has no expiry."""

    id = IdField("whs_", primary_key=True)
    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="secrets")
    sealed_secret = models.TextField(editable=False)
    expires_at = models.DateTimeField(null=True, editable=False)

    objects = WebhookSecretQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["webhook"], condition=Q(expires_at=None), name="one_newest_secret")
        ]

    def __str__(self) -> str:
        return self.id

    def with_secret(self, secret: str) -> Self:
        """Seal the secret into this row; the row is not saved."""
        self.sealed_secret = seal(secret.encode(), purpose=SEAL_PURPOSE, row=self.id)
        return self

    def secret(self) -> str:
        """Return the secret. Raises InvalidTag if the value was sealed for another row."""
        return unseal(self.sealed_secret, purpose=SEAL_PURPOSE, row=self.id).decode()


class FeedCursor(models.Model):
    """The position in the feed of all workspaces up to which deliveries have been made (webhooks.publishing).

    The only row; its lock lets one process publish at a time.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    position = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return str(self.position)


class WebhookEventQuerySet(models.QuerySet["WebhookEvent"]):
    def delete_older(self, workspace_id: str, *, before: datetime, limit: int) -> int:
        """Delete a workspace's events created before a time, oldest first, with their deliveries.

        limit: the maximum per call, for small transactions. Returns the number deleted, 0 when none is left.
        """
        with connection.cursor() as cursor:
            cursor.execute(DELETE_OLDER_EVENTS, [to_uuid(workspace_id, prefix="ws_"), before, limit])
            return int(cursor.rowcount)

    def delete_events(self, event_ids: Collection[str]) -> None:
        """Delete events with their deliveries and queue entries."""
        with connection.cursor() as cursor:
            cursor.execute(DELETE_EVENTS, [[to_uuid(event_id, prefix="evt_") for event_id in event_ids]])


class WebhookEvent(models.Model):
    """The body of an event, rendered once when it is published, for all endpoints and attempts."""

    id = IdField("evt_", primary_key=True)
    workspace_id = IdField("ws_")
    body = models.TextField()
    created_at = models.DateTimeField()

    objects = WebhookEventQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["workspace_id", "created_at"], name="webhook_event_age")]

    def __str__(self) -> str:
        return self.id


class WebhookDeliveryStatus(models.TextChoices):
    PENDING = "pending"
    SUCCEEDED = "succeeded"
    EXHAUSTED = "exhausted"
    DISCARDED = "discarded"


class WebhookDelivery(models.Model):
    """One event for one endpoint, with a log of the attempts."""

    id = IdField("whd_", primary_key=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, db_constraint=False, db_index=False)
    webhook = models.ForeignKey(Webhook, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False)
    event = models.ForeignKey(WebhookEvent, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False)
    kind = models.CharField(max_length=32, choices=webhook_kind_choices, help_text="The type of the event.")
    is_test = models.BooleanField(default=False, help_text="Whether this is a test event.")
    status = models.CharField(max_length=16, choices=WebhookDeliveryStatus.choices)
    attempt_count = models.PositiveIntegerField(default=0, help_text="The number of attempts so far.")
    # The last 20 attempts, in the API's format, with the request's headers for the dashboard (docs/decisions/0136).
    attempts = models.JSONField(default=list)
    status_code = models.PositiveSmallIntegerField(
        null=True, help_text="The HTTP status of the last response; null without one."
    )
    error = models.CharField(
        max_length=32, blank=True, default="", help_text="The code of the last error; null after a success."
    )
    created_at = models.DateTimeField()
    succeeded_at = models.DateTimeField(null=True, help_text="The time of the successful attempt; null without one.")

    class Meta:
        verbose_name_plural = "webhook deliveries"
        constraints = [models.UniqueConstraint(fields=["event", "webhook"], name="one_delivery_an_event_and_webhook")]
        indexes = [
            models.Index(fields=["webhook", "-created_at", "-id"], name="delivery_newest"),
            models.Index(fields=["webhook", "status", "-created_at", "-id"], name="delivery_by_status"),
        ]
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return self.id

    @property
    def type(self) -> str:
        return wire_type(self.kind)

    @property
    def next_attempt_at(self) -> datetime | None:
        """The time of the next attempt; None when none is left or an attempt is in flight."""
        pending: PendingDelivery | None = getattr(self, "pending", None)
        return pending.due_at if pending and pending.stage != Stage.LEASED else None


class PendingDelivery(models.Model):
    """A queue entry: one narrow row per delivery with attempts left, deleted when the delivery ends."""

    delivery = models.OneToOneField(
        WebhookDelivery, primary_key=True, on_delete=models.DO_NOTHING, db_constraint=False, related_name="pending"
    )
    webhook_id = IdField("wh_")
    stage = models.PositiveSmallIntegerField(choices=Stage.choices[:3])
    due_at = models.DateTimeField(help_text="time it became ready, or end of its wait or lease")
    expires_at = models.DateTimeField(help_text="no attempt starts later")
    fence = models.PositiveIntegerField(default=0, help_text="incremented by every claim")
    attempts = models.PositiveSmallIntegerField(default=0)
    by_hand = models.BooleanField(
        default=False, help_text="a test or a replay: attempted even if the endpoint is disabled"
    )

    class Meta:
        db_table = "webhooks_pending"
        indexes = [
            models.Index(fields=["stage", "webhook_id", "due_at"], name="webhook_pending_turn"),
            models.Index(
                fields=["due_at"], condition=Q(stage__in=[Stage.WAITING, Stage.LEASED]), name="webhook_pending_due"
            ),
            models.Index(fields=["expires_at"], name="webhook_pending_expiry"),
        ]

    def __str__(self) -> str:
        return f"{self.delivery_id} ({self.get_stage_display()})"
