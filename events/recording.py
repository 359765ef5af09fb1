"""Recording events: appends them to the log, in the transaction of the change that they describe.

Their order in the feed and their webhooks follow after the commit (events.sequencer).
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from core.lib.ids import new_uuid, to_uuid
from core.lib.sql import run_replanned
from events.kinds import EventKind

# The statement that accepts emails inserts their first events with the same columns (emails.accept.insertion).
INSERT_INTO = "INSERT INTO emails_event (id, workspace_id, email_id, recipient_id, kind, payload, status, created_at)"
# An open or a click whose time is not stored leaves no order among the events either (docs/decisions/0376).
STATUS = """
CASE WHEN 'epoch' IN (r.opened_at, e.opened_at) AND coalesce(r.state, e.status) IN ('opened', 'clicked')
     THEN 'delivered' ELSE coalesce(r.state, e.status) END
"""
APPEND = f"""
{INSERT_INTO}
SELECT new.id, coalesce(new.workspace_id, e.workspace_id), new.email_id, new.recipient_id, new.kind, new.payload,
       {STATUS}, now()
  FROM ROWS FROM (json_to_recordset(%s) AS (id uuid, workspace_id uuid, email_id uuid, recipient_id uuid, kind text,
       payload jsonb)) WITH ORDINALITY AS new (id, workspace_id, email_id, recipient_id, kind, payload, position)
  LEFT JOIN emails_email e ON e.id = new.email_id
  LEFT JOIN emails_recipient r ON r.id = new.recipient_id
 ORDER BY new.position
"""  # noqa: S608 - a constant


@dataclass(frozen=True)
class NewEvent:
    """A new event of an email, of one of its recipients, or of a workspace.

    details: payload members besides emailId and to.
    workspace_id: needed without an email.
    """

    kind: EventKind
    email_id: str | None = None
    recipient_id: str | None = None
    to: str | None = None
    details: dict[str, Any] = field(default_factory=dict)
    workspace_id: str | None = None
    id: UUID = field(default_factory=new_uuid)

    @property
    def payload(self) -> dict[str, Any]:
        email = {"emailId": self.email_id} if self.email_id else {}
        return {**email, **({"to": self.to} if self.to else {}), **self.details}

    def row(self) -> dict[str, Any]:
        """Return the values of the statement."""
        return {
            "id": str(self.id),
            "workspace_id": self.workspace_id and str(to_uuid(self.workspace_id, prefix="ws_")),
            "email_id": self.email_id and str(to_uuid(self.email_id)),
            "recipient_id": self.recipient_id and str(to_uuid(self.recipient_id)),
            "kind": self.kind.value,
            "payload": self.payload,
        }


def record_events(events: Sequence[NewEvent]) -> None:
    """Append events in the given order, in one statement.

    Call it in the transaction that changed the recipients, after the change: events have their status.
    """
    if events:
        run_replanned(APPEND, [json.dumps([event.row() for event in events])])
