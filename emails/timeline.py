"""Write events; the only writer of the timeline after acceptance."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import connection

from emails.models import Event
from keys.ids import new_id, to_uuid

INSERT = """
INSERT INTO emails_event (id, email_id, recipient_id, kind, payload, created_at)
SELECT id, email_id, recipient_id, kind, payload, now()
  FROM ROWS FROM (json_to_recordset(%s) AS (id uuid, email_id uuid, recipient_id uuid, kind text, payload jsonb))
       WITH ORDINALITY AS e (id, email_id, recipient_id, kind, payload, number)
 ORDER BY number
"""


@dataclass(frozen=True)
class NewEvent:
    """A fact about an email, or about one recipient; details are what the kind adds to emailId and to."""

    kind: Event.Kind
    email_id: str
    recipient_id: str | None = None
    to: str | None = None
    details: dict[str, Any] = field(default_factory=dict)


def add_events(events: Sequence[NewEvent]) -> None:
    """Append events in the order given, in one statement."""
    if not events:
        return
    with connection.cursor() as cursor:
        cursor.execute(INSERT, [json.dumps([_row(event) for event in events])])


def _row(event: NewEvent) -> dict[str, Any]:
    return {
        "id": str(to_uuid(new_id())),
        "email_id": str(to_uuid(event.email_id)),
        "recipient_id": event.recipient_id and str(to_uuid(event.recipient_id)),
        "kind": event.kind.value,
        "payload": {"emailId": event.email_id, **({"to": event.to} if event.to else {}), **event.details},
    }
