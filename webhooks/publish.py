"""Event publishing: insert the event bodies, a delivery per endpoint and a queue entry per delivery.

One statement inserts any number of them.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from lib.datetimes import format_datetime
from lib.ids import new_id, to_uuid
from lib.sql import run
from lib.worker import wakeup
from lib.worker.stages import Stage
from webhooks.event_types import EVENT_TYPES, STANDARD_EVENTS, wire_type
from webhooks.models import Webhook
from webhooks.sending.retries import WINDOW

INSERT = f"""
WITH event AS (
    INSERT INTO webhooks_webhookevent (id, workspace_id, body, created_at)
    SELECT id, workspace_id, body, created_at
      FROM json_to_recordset(%(events)s) AS e (id uuid, workspace_id uuid, body text, created_at timestamptz)
), given AS (
    SELECT * FROM json_to_recordset(%(deliveries)s) AS d (id uuid, workspace_id uuid, webhook_id uuid, event_id uuid,
        kind text, is_test boolean, created_at timestamptz)
), delivery AS (
    INSERT INTO webhooks_webhookdelivery (id, workspace_id, webhook_id, event_id, kind, is_test, status, attempt_count,
                                          attempts, error, created_at)
    SELECT id, workspace_id, webhook_id, event_id, kind, is_test, 'pending', 0, '[]', '', created_at FROM given
)
INSERT INTO webhooks_pending (delivery_id, webhook_id, stage, due_at, expires_at, fence, attempts, by_hand)
SELECT id, webhook_id, {Stage.READY}, now(), now() + %(window)s, 0, 0, is_test FROM given
"""  # noqa: S608 - a constant


@dataclass(frozen=True)
class NewWebhookEvent:
    """An event of a workspace to post to its endpoints. data: the `data` member of the body."""

    workspace_id: str
    kind: str
    event_id: str
    created_at: datetime
    data: dict[str, Any]
    is_test: bool = False

    def body(self) -> str:
        """Render the JSON body; only test events have a `test` member."""
        members = {
            "id": self.event_id,
            "type": wire_type(self.kind),
            "event": self.kind,
            "createdAt": format_datetime(self.created_at),
            **({"test": True} if self.is_test else {}),
            "data": self.data,
        }
        return json.dumps(members, ensure_ascii=False, separators=(",", ":"))


def publish_events(events: Iterable[NewWebhookEvent]) -> None:
    """Create deliveries for every subscribed endpoint. Call it in the transaction that records the events.

    Events of types without subscriptions (`queued`, `cancelled`) are skipped.
    """
    publishable = [event for event in events if event.kind in EVENT_TYPES]
    if not publishable:
        return
    subscribers = _subscribers({event.workspace_id for event in publishable})
    insert_deliveries(
        [
            (event, webhook_id)
            for event in publishable
            for webhook_id, kinds in subscribers.get(event.workspace_id, ())
            if event.kind in kinds
        ]
    )


def insert_deliveries(pairs: Sequence[tuple[NewWebhookEvent, str]]) -> list[str]:
    """Insert a delivery for each pair of event and endpoint id, ready at once; return the delivery ids."""
    if not pairs:
        return []
    ids = [new_id("whd_") for _ in pairs]
    events = {event.event_id: event for event, _ in pairs}
    values: dict[str, Any] = {
        "events": json.dumps([_event_row(event) for event in events.values()]),
        "deliveries": json.dumps([_delivery_row(id_, *pair) for id_, pair in zip(ids, pairs, strict=True)]),
        "window": WINDOW,
    }
    run(INSERT, values)
    transaction.on_commit(lambda: wakeup.notify("webhooks"))
    return ids


def _subscribers(workspace_ids: set[str]) -> dict[str, list[tuple[str, list[str]]]]:
    """Return the active endpoints with the event types that they subscribed to and have a format for, by workspace."""
    found: dict[str, list[tuple[str, list[str]]]] = {}
    rows = Webhook.objects.filter(workspace__in=workspace_ids, active=True).order_by()
    for workspace_id, webhook_id, kinds, format_ in rows.values_list("workspace_id", "id", "events", "format"):
        formatted = (
            kinds if format_ == Webhook.Format.STANDARD else [one for one in kinds if one not in STANDARD_EVENTS]
        )
        found.setdefault(workspace_id, []).append((webhook_id, formatted))
    return found


def _event_row(event: NewWebhookEvent) -> dict[str, Any]:
    return {
        "id": str(to_uuid(event.event_id, prefix="evt_")),
        "workspace_id": str(to_uuid(event.workspace_id, prefix="ws_")),
        "body": event.body(),
        "created_at": event.created_at.isoformat(),
    }


def _delivery_row(delivery_id: str, event: NewWebhookEvent, webhook_id: str) -> dict[str, Any]:
    return {
        "id": str(to_uuid(delivery_id, prefix="whd_")),
        "workspace_id": str(to_uuid(event.workspace_id, prefix="ws_")),
        "webhook_id": str(to_uuid(webhook_id, prefix="wh_")),
        "event_id": str(to_uuid(event.event_id, prefix="evt_")),
        "kind": event.kind,
        "is_test": event.is_test,
        "created_at": event.created_at.isoformat(),
    }
