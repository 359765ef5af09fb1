"""Write events; the only writer of the timeline after acceptance, and so the one who tells webhooks."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from emails.models import Event
from lib.ids import from_uuid, new_uuid, to_uuid
from lib.sql import run_planned
from webhooks.event_types import KINDS
from webhooks.services import Announcement, announce

# Writes, and says in the same round trip what endpoints are told beside an event's payload: rows for those workspaces
# only that have an endpoint, so that the others pay for nothing but a look into an index.
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
                         'status', coalesce(r.state, e.status), 'tags', e.tags, 'metadata', e.metadata)
  FROM given
  JOIN emails_email e ON e.id = given.email_id
  LEFT JOIN emails_recipient r ON r.id = given.recipient_id
 WHERE given.kind = ANY(%s)
   AND EXISTS (SELECT FROM webhooks_webhook w WHERE w.workspace_id = e.workspace_id AND w.active)
 ORDER BY given.number
"""


@dataclass(frozen=True)
class NewEvent:
    """A fact about an email, or about one recipient; details are what the kind adds to emailId and to."""

    kind: Event.Kind
    email_id: str
    recipient_id: str | None = None
    to: str | None = None
    details: dict[str, Any] = field(default_factory=dict)
    id: UUID = field(default_factory=new_uuid)

    @property
    def payload(self) -> dict[str, Any]:
        return {"emailId": self.email_id, **({"to": self.to} if self.to else {}), **self.details}


def add_events(events: Sequence[NewEvent]) -> None:
    """Append events in the order given, in one statement, and announce them to webhooks.

    Call it in the transaction of what happened, after the recipients were moved: webhooks are told their states.
    """
    if not events:
        return
    heard = run_planned(INSERT, [json.dumps([_row(event) for event in events]), list(KINDS)])
    announce(
        _announcement(events[number - 1], from_uuid(workspace, prefix="ws_"), now, facts)
        for number, workspace, now, facts in heard
    )


def _row(event: NewEvent) -> dict[str, Any]:
    return {
        "id": str(event.id),
        "email_id": str(to_uuid(event.email_id)),
        "recipient_id": event.recipient_id and str(to_uuid(event.recipient_id)),
        "kind": event.kind.value,
        "payload": event.payload,
    }


def _announcement(event: NewEvent, workspace_id: str, now: datetime, facts: dict[str, Any]) -> Announcement:
    data = {"emailId": event.email_id, **facts, **event.payload}
    return Announcement(workspace_id, event.kind.value, from_uuid(event.id, prefix="evt_"), now, data)
