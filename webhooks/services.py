"""Webhook services: create, update, delete, rotate the secret, test and replay."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.db.models.functions import Now

from core.api.errors import InvalidFields, NotFound
from core.lib.coded_texts import CodedText
from core.lib.ids import from_uuid, to_uuid
from core.lib.sql import run
from core.lib.worker import wakeup
from core.lib.worker.stages import Stage
from core.workspaces.audit import AuditAction, record_action
from core.workspaces.errors import PlanLimitReached
from core.workspaces.models import Workspace
from events.models import Event
from events.rendering import render_events
from streams.services import existing_stream
from webhooks.formats import STANDARD, find_format
from webhooks.headers import MASK, unmasked
from webhooks.models import (
    Webhook,
    WebhookDelivery,
    WebhookDeliveryStatus,
    WebhookSecret,
    seal_headers,
)
from webhooks.publishing import insert_deliveries
from webhooks.samples import sample_for
from webhooks.sending.queue import discard_pending
from webhooks.sending.retries import WINDOW
from webhooks.sending.signing import new_secret
from webhooks.sending.targets import check_target, is_same_host

MAX_WEBHOOKS = 20
SECRET_OVERLAP = timedelta(hours=24)
# In addition to the newest one: frequent rotation must not make the headers grow.
MAX_OLD_SECRETS = 3

# A replay starts over with a new window and the first attempt; a pending delivery only becomes due.
REPLAY = f"""
INSERT INTO webhooks_pending (delivery_id, webhook_id, stage, due_at, expires_at, fence, attempts, by_hand)
SELECT id, webhook_id, {Stage.READY}, now(), now() + %(window)s, 0, 0, true
  FROM webhooks_webhookdelivery WHERE id = ANY(%(deliveries)s) ORDER BY id
    ON CONFLICT (delivery_id) DO UPDATE SET stage = {Stage.READY}, due_at = now(), by_hand = true
    WHERE webhooks_pending.stage = {Stage.WAITING}
"""  # noqa: S608 - constants

REPLAY_AT_ONCE = 1_000
# A delivery that is being replayed already has a queue entry.
REPLAY_FAILED = f"""
WITH failed AS (
    SELECT id, webhook_id FROM webhooks_webhookdelivery WHERE webhook_id = %(webhook)s AND status = 'exhausted'
     ORDER BY created_at, id LIMIT %(limit)s
), entry AS (
    INSERT INTO webhooks_pending (delivery_id, webhook_id, stage, due_at, expires_at, fence, attempts, by_hand)
    SELECT id, webhook_id, {Stage.READY}, now(), now() + %(window)s, 0, 0, true FROM failed ORDER BY id
        ON CONFLICT DO NOTHING
    RETURNING delivery_id
)
UPDATE webhooks_webhookdelivery d SET status = 'pending' FROM entry WHERE d.id = entry.delivery_id RETURNING d.id
"""  # noqa: S608 - constants

# A pending delivery is left alone.
REPLAY_SINCE = f"""
WITH chosen AS (
    SELECT id, webhook_id, created_at FROM webhooks_webhookdelivery
     WHERE webhook_id = %(webhook)s AND created_at >= %(since)s AND status = ANY(%(statuses)s) AND NOT is_test
     ORDER BY created_at, id LIMIT %(limit)s
), entry AS (
    INSERT INTO webhooks_pending (delivery_id, webhook_id, stage, due_at, expires_at, fence, attempts, by_hand)
    SELECT id, webhook_id, {Stage.READY}, now(), now() + %(window)s, 0, 0, true FROM chosen ORDER BY id
        ON CONFLICT DO NOTHING
    RETURNING delivery_id
)
UPDATE webhooks_webhookdelivery d SET status = 'pending' FROM entry WHERE d.id = entry.delivery_id
RETURNING d.created_at
"""  # noqa: S608 - constants
# Those of a delivery that has ended.
ENDED_STATUSES = (
    WebhookDeliveryStatus.SUCCEEDED,
    WebhookDeliveryStatus.EXHAUSTED,
    WebhookDeliveryStatus.DISCARDED,
)

# An event without an entry in the feed, or behind the cursor, has no deliveries yet.
ENDED = """
SELECT e.id FROM emails_event e
  JOIN events_feedentry f ON f.workspace_id = e.workspace_id AND f.number = e.number AND f.source = 'emails'
 WHERE e.id = ANY(%s) AND f.position <= (SELECT position FROM webhooks_feedcursor)
   AND NOT EXISTS (
       SELECT FROM webhooks_webhookdelivery d JOIN webhooks_pending p ON p.delivery_id = d.id WHERE d.event_id = e.id)
"""
EMPTY_BODIES = """
UPDATE webhooks_webhookevent
   SET body = jsonb_set(body::jsonb, '{data}', jsonb_build_object('id', body::jsonb->'data'->'id', 'deleted', true))
 WHERE id = ANY(%s)
"""


@contextmanager
def lock_webhooks(workspace: Workspace) -> Iterator[None]:
    """Open a transaction in which no other one creates a webhook of the workspace, or changes one that it read.

    A request whose effect depends on the existing webhooks reads them in it.
    """
    with transaction.atomic():
        workspace.lock()
        yield


def create_webhook(
    workspace: Workspace,
    *,
    url: str,
    events: Sequence[str],
    streams: Sequence[str] = (),
    format: str = STANDARD,  # noqa: A002 - the name of the field
    headers: Mapping[str, str] | None = None,
) -> tuple[Webhook, str]:
    """Create an endpoint; return it with its secret, which cannot be read again.

    streams: the only ones whose events it gets; empty for all.
    headers: further ones of its requests, whose values are sealed.
    Raises InvalidFields with forbidden_target, header_masked or event_not_in_format, StreamNotFound, and
    PlanLimitReached at 20 webhooks.
    """
    check_target(url)
    _check_streams(workspace, streams)
    _check_events(events, format_=format)
    webhook = Webhook(workspace=workspace, url=url, events=list(events), streams=list(streams), format=format)
    webhook.sealed_headers = seal_headers(unmasked(headers or {}, current={}), webhook_id=webhook.id)
    secret = new_secret()
    with lock_webhooks(workspace):
        if workspace.webhooks.count() >= MAX_WEBHOOKS:
            detail = CodedText("webhooks.too_many", limit=MAX_WEBHOOKS)
            raise PlanLimitReached(detail, resource="webhooks", limit=MAX_WEBHOOKS)
        webhook.save(force_insert=True)
        WebhookSecret(webhook=webhook).with_secret(secret).save(force_insert=True)
        record_action(workspace, AuditAction.WEBHOOK_CREATED, about=url)
    webhook.refresh_from_db()
    return webhook, secret


def update_webhook(webhook: Webhook, *, changes: Mapping[str, Any]) -> Webhook:
    """Change an endpoint. Disabling discards pending deliveries; enabling clears disabled_reason.

    Raises InvalidFields with forbidden_target, header_masked, headers_required or event_not_in_format,
    StreamNotFound, and NotFound if the webhook was deleted meanwhile.
    """
    if "url" in changes:
        check_target(changes["url"])
    _check_streams(webhook.workspace, changes.get("streams", ()))
    _check_events(changes.get("events", webhook.events), format_=changes.get("format", webhook.format))
    fields = {name: value for name, value in changes.items() if name != "headers"} | _sealed_headers(webhook, changes)
    if "active" in changes:
        fields |= {"disabled_reason": "", "failing_since": None}
    with transaction.atomic():
        # Locked before the webhook row, in the lock order of webhooks.sending.outcomes.
        if changes.get("active") is False:
            discard_pending(webhook.id)
        if fields and not Webhook.objects.filter(id=webhook.id).update(**fields):
            raise NotFound
        if fields:
            about = CodedText("workspaces.change", about=webhook.url, words=list(changes))
            record_action(webhook.workspace, AuditAction.WEBHOOK_CHANGED, about=about)
    webhook.refresh_from_db()
    return webhook


@transaction.atomic
def delete_webhook(webhook: Webhook) -> None:
    """Delete an endpoint and stop posting to it. Raises NotFound if it was deleted in the meantime.

    Its deliveries are no longer accessible; retention deletes their rows (docs/decisions/0034).
    """
    discard_pending(webhook.id)
    _, deleted = Webhook.objects.filter(id=webhook.id).delete()
    if not deleted.get("webhooks.Webhook"):
        raise NotFound
    record_action(webhook.workspace, AuditAction.WEBHOOK_DELETED, about=webhook.url)


@transaction.atomic
def rotate_secret(webhook: Webhook) -> str:
    """Create and return a new secret for an endpoint; the old one keeps signing for 24 hours."""
    # Serializes concurrent rotations.
    if not Webhook.objects.select_for_update(no_key=True).filter(id=webhook.id).exists():
        raise NotFound
    secrets = WebhookSecret.objects.filter(webhook=webhook)
    secrets.filter(expires_at=None).update(expires_at=Now() + SECRET_OVERLAP)
    kept = secrets.valid().values_list("id", flat=True)[:MAX_OLD_SECRETS]
    secrets.exclude(id__in=list(kept)).delete()
    secret = new_secret()
    WebhookSecret(webhook=webhook).with_secret(secret).save(force_insert=True)
    record_action(webhook.workspace, AuditAction.WEBHOOK_ROTATED, about=webhook.url)
    return secret


def send_test(webhook: Webhook) -> WebhookDelivery:
    """Post a sample event, even to a disabled endpoint. Raises InvalidFields with forbidden_target."""
    check_target(webhook.url)
    with transaction.atomic():
        (delivery_id,) = insert_deliveries([(sample_for(webhook), webhook.id)])
    return WebhookDelivery.objects.select_related("pending", "event").get(id=delivery_id)


@transaction.atomic
def replay_delivery(delivery: WebhookDelivery) -> WebhookDelivery:
    """Post a delivery again, with the same bytes and id, regardless of its status.

    A pending delivery becomes due now; one in flight is left unchanged.
    """
    _replay([delivery])
    return WebhookDelivery.objects.select_related("pending", "event").get(id=delivery.id)


def _replay(deliveries: Sequence[WebhookDelivery]) -> None:
    """Lock all queue entries before the first delivery: the lock order of webhooks.sending.outcomes."""
    ids = [delivery.id for delivery in deliveries]
    run(REPLAY, {"deliveries": [to_uuid(one, prefix="whd_") for one in ids], "window": WINDOW})
    WebhookDelivery.objects.filter(id__in=ids).update(status=WebhookDeliveryStatus.PENDING)
    transaction.on_commit(lambda: wakeup.notify("webhooks"))


@transaction.atomic
def replay_failed(webhook: Webhook) -> int:
    """Post the exhausted deliveries of an endpoint again, oldest first, at most REPLAY_AT_ONCE; return their number."""
    values = {"webhook": to_uuid(webhook.id, prefix="wh_"), "window": WINDOW, "limit": REPLAY_AT_ONCE}
    replayed = len(run(REPLAY_FAILED, values))
    transaction.on_commit(lambda: wakeup.notify("webhooks"))
    return replayed


@transaction.atomic
def replay_since(
    webhook: Webhook, *, since: datetime, statuses: Sequence[WebhookDeliveryStatus]
) -> tuple[int, datetime | None]:
    """Post the deliveries of events since a time again that have one of the statuses, with the same bytes and ids.

    The oldest first, at most REPLAY_AT_ONCE, without tests. Returns their number and the time of the newest one; the
    rest is replayed by another call since that time.
    """
    values = {"webhook": to_uuid(webhook.id, prefix="wh_"), "since": since, "statuses": list(statuses)}
    replayed = run(REPLAY_SINCE, {**values, "window": WINDOW, "limit": REPLAY_AT_ONCE})
    transaction.on_commit(lambda: wakeup.notify("webhooks"))
    return len(replayed), max((created_at for (created_at,) in replayed), default=None)


def with_webhook_status(events: QuerySet[Event]) -> QuerySet[Event]:
    """Annotate events with sent_to_webhook: whether an endpoint accepted the event."""
    accepted = WebhookDelivery.objects.filter(event=OuterRef("id"), succeeded_at__isnull=False)
    return events.annotate(sent_to_webhook=Exists(accepted))


def _sealed_headers(webhook: Webhook, changes: Mapping[str, Any]) -> dict[str, str]:
    """Return the column of the headers after changes, if they change.

    Raises InvalidFields if another host would get values that were given for the present one.
    """
    given = changes.get("headers")
    keeps_values = bool(webhook.sealed_headers) and (given is None or MASK in given.values())
    if keeps_values and not is_same_host(webhook.url, changes.get("url", webhook.url)):
        detail = CodedText("webhooks.headers_required")
        raise InvalidFields([{"field": "headers", "code": "headers_required", "detail": detail}])
    if given is None:
        return {}
    headers = unmasked(given, current=webhook.readable_headers)
    return {"sealed_headers": seal_headers(headers, webhook_id=webhook.id)}


@transaction.atomic
def redeliver_event(workspace: Workspace, event_id: str, *, webhook_ids: Sequence[str] | None) -> int:
    """Post an event of the log again, with the same bytes and id; return the number of deliveries.

    webhook_ids: the endpoints; None for all that got it, else for those that subscribe to it now.
    """
    deliveries = WebhookDelivery.objects.filter(event=event_id, workspace=workspace)
    chosen = list(deliveries.filter(webhook__in=webhook_ids) if webhook_ids else deliveries)
    repeated = [delivery.webhook_id for delivery in chosen]
    if chosen:
        _replay(chosen)
    number = Event.objects.filter(id=event_id).values_list("number", flat=True).first()
    event = render_events([number], is_whole=True).get(number) if number is not None else None
    if event is None or (repeated and not webhook_ids):
        return len(repeated)
    others = workspace.webhooks.filter(active=True)
    others = others.filter(id__in=webhook_ids) if webhook_ids else others
    getting = [webhook.id for webhook in others if webhook_ids or webhook.subscribes_to(event)]
    new = [webhook_id for webhook_id in getting if webhook_id not in repeated]
    insert_deliveries([(event, webhook_id) for webhook_id in new])
    return len(repeated) + len(new)


def find_ended_events(event_ids: Collection[str]) -> set[str]:
    """Return the events whose deliveries were all made and have ended, or that have none."""
    ids = [to_uuid(event_id, prefix="evt_") for event_id in event_ids]
    return {from_uuid(event_id, prefix="evt_") for (event_id,) in run(ENDED, [ids])}


def empty_bodies(event_ids: Collection[str]) -> None:
    """Remove the data of events except for its id from their bodies; the log of the deliveries stays."""
    run(EMPTY_BODIES, [[to_uuid(event_id, prefix="evt_") for event_id in event_ids]])


def _check_events(events: Sequence[str], *, format_: str) -> None:
    """Raise InvalidFields for the first event that a format with few events does not have."""
    webhook_format = find_format(format_)
    for index, kind in enumerate(events):
        if webhook_format.refuses_others and kind not in webhook_format.kinds:
            known = ", ".join(webhook_format.kinds)
            detail = CodedText("webhooks.event_not_in_format", kind=kind, format=webhook_format.name, known=known)
            raise InvalidFields([{"field": f"events[{index}]", "code": "event_not_in_format", "detail": detail}])


def _check_streams(workspace: Workspace, streams: Sequence[str]) -> None:
    """Raise StreamNotFound for the first stream that does not exist."""
    for stream in streams:
        existing_stream(workspace, stream)
