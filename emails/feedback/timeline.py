"""Timeline events after acceptance. This module is their only writer, and publishes them to webhooks."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from emails.models import Event
from lib.ids import from_uuid, new_uuid, to_uuid
from lib.sql import run_replanned
from webhooks.event_types import RECIPIENT_EVENTS
from webhooks.services import NewWebhookEvent, publish_events

# Inserts events and returns the additional webhook payload in one round trip. Only workspaces with an active endpoint
# get rows; the others cost one index lookup.
INSERT = """
WITH given AS (
    SELECT * FROM ROWS FROM (json_to_recordset(%s) AS (id uuid, email_id uuid, recipient_id uuid, kind text,
        payload jsonb)) WITH ORDINALITY AS e (id, email_id, recipient_id, kind, payload, number)
), written AS (
    INSERT INTO emails_event (id, email_id, recipient_id, kind, payload, created_at)
    SELECT id, email_id, recipient_id, kind, payload, now() FROM given ORDER BY number
)
SELECT given.number, e.workspace_id, now(),
       json_build_object('to', array_to_string(e."to", ', '), 'from', e.sender, 'subject', e.subject,
                         'status', coalesce(r.state, e.status), 'tags', e.tags, 'metadata', e.metadata,
                         'test', e.is_test)
  FROM given
  JOIN emails_email e ON e.id = given.email_id
  LEFT JOIN emails_recipient r ON r.id = given.recipient_id
 WHERE given.kind = ANY(%s)
   AND EXISTS (SELECT FROM webhooks_webhook w WHERE w.workspace_id = e.workspace_id AND w.active)
 ORDER BY given.number
"""


@dataclass(frozen=True)
class NewEvent:
    """A new event of an email or of one recipient. details: payload members besides emailId and to."""

    kind: Event.EventKind
    email_id: str
    recipient_id: str | None = None
    to: str | None = None
    details: dict[str, Any] = field(default_factory=dict)
    id: UUID = field(default_factory=new_uuid)

    @property
    def payload(self) -> dict[str, Any]:
        return {"emailId": self.email_id, **({"to": self.to} if self.to else {}), **self.details}


def add_events(events: Sequence[NewEvent]) -> None:
    """Append events in the given order, in one statement, and publish them to webhooks.

    Call it in the transaction that changed the recipients, after the change: webhook payloads contain their states.
    """
    if not events:
        return
    rows = run_replanned(INSERT, [json.dumps([_row(event) for event in events]), list(RECIPIENT_EVENTS)])
    publish_events(
        _webhook_event(events[number - 1], from_uuid(workspace, prefix="ws_"), now, fields)
        for number, workspace, now, fields in rows
    )


def _row(event: NewEvent) -> dict[str, Any]:
    return {
        "id": str(event.id),
        "email_id": str(to_uuid(event.email_id)),
        "recipient_id": event.recipient_id and str(to_uuid(event.recipient_id)),
        "kind": event.kind.value,
        "payload": event.payload,
    }


def _webhook_event(event: NewEvent, workspace_id: str, now: datetime, fields: dict[str, Any]) -> NewWebhookEvent:
    if not fields["test"]:
        del fields["test"]
    data = {"emailId": event.email_id, **fields, **event.payload}
    return NewWebhookEvent(workspace_id, event.kind.value, from_uuid(event.id, prefix="evt_"), now, data)
