"""Write down who is to be told of what.

An event as it will be posted, a delivery for each endpoint, a place in the queue for each delivery: one statement
for any number of them.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection, transaction

from api.fields import wire_time
from lib.ids import new_id, to_uuid
from lib.worker import wakeup
from webhooks.event_types import KINDS, type_of
from webhooks.models import Webhook
from webhooks.sending.retries import WINDOW

INSERT = """
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
SELECT id, webhook_id, 1, now(), now() + %(window)s, 0, 0, is_test FROM given
"""


@dataclass(frozen=True)
class Announcement:
    """An event of a workspace, as an endpoint is told of it; data is what its body says beside the common members."""

    workspace_id: str
    kind: str
    event_id: str
    created_at: datetime
    data: dict[str, Any]
    is_test: bool = False

    def body(self) -> str:
        """Render what is posted; `test` is there in tests alone."""
        members = {
            "id": self.event_id,
            "type": type_of(self.kind),
            "event": self.kind,
            "createdAt": wire_time(self.created_at),
            **({"test": True} if self.is_test else {}),
            "data": self.data,
        }
        return json.dumps(members, ensure_ascii=False, separators=(",", ":"))


def announce(announcements: Iterable[Announcement]) -> None:
    """Let every endpoint know that subscribed to an event; call it in the transaction that writes the events.

    Kinds that nobody can subscribe to are left out.
    """
    told = [one for one in announcements if one.kind in KINDS]
    if not told:
        return
    subscribers = _subscribers({one.workspace_id for one in told})
    write(
        [
            (one, webhook_id)
            for one in told
            for webhook_id, kinds in subscribers.get(one.workspace_id, ())
            if one.kind in kinds
        ]
    )


def write(pairs: Sequence[tuple[Announcement, str]]) -> list[str]:
    """Write a delivery for each announcement and endpoint, ready at once; return the deliveries' ids."""
    if not pairs:
        return []
    ids = [new_id("whd_") for _ in pairs]
    events = {one.event_id: one for one, _ in pairs}
    values: dict[str, Any] = {
        "events": json.dumps([_event_row(one) for one in events.values()]),
        "deliveries": json.dumps([_delivery_row(id_, *pair) for id_, pair in zip(ids, pairs, strict=True)]),
        "window": WINDOW,
    }
    with connection.cursor() as cursor:
        cursor.execute(INSERT, values)
    transaction.on_commit(lambda: wakeup.ring("webhooks"))
    return ids


def _subscribers(workspace_ids: set[str]) -> dict[str, list[tuple[str, list[str]]]]:
    """Return the endpoints that are on, with their kinds, by workspace."""
    found: dict[str, list[tuple[str, list[str]]]] = {}
    rows = Webhook.objects.filter(workspace__in=workspace_ids, active=True).order_by()
    for workspace_id, webhook_id, kinds in rows.values_list("workspace_id", "id", "events"):
        found.setdefault(workspace_id, []).append((webhook_id, kinds))
    return found


def _event_row(one: Announcement) -> dict[str, Any]:
    return {
        "id": str(to_uuid(one.event_id, prefix="evt_")),
        "workspace_id": str(to_uuid(one.workspace_id, prefix="ws_")),
        "body": one.body(),
        "created_at": one.created_at.isoformat(),
    }


def _delivery_row(delivery_id: str, one: Announcement, webhook_id: str) -> dict[str, Any]:
    return {
        "id": str(to_uuid(delivery_id, prefix="whd_")),
        "workspace_id": str(to_uuid(one.workspace_id, prefix="ws_")),
        "webhook_id": str(to_uuid(webhook_id, prefix="wh_")),
        "event_id": str(to_uuid(one.event_id, prefix="evt_")),
        "kind": one.kind,
        "is_test": one.is_test,
        "created_at": one.created_at.isoformat(),
    }
