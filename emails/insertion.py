"""Write accepted emails: one statement for any number of them.

A statement per table and email was measured at 458 µs an email, one for all at 25 µs (DESIGN, "Measured").
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from django.db import connection

from emails.models import Pending
from emails.states import State
from keys.ids import new_id, to_uuid
from workspaces.models import Workspace

INSERT = """
WITH content AS (
    INSERT INTO emails_content (id, html, text)
    SELECT * FROM unnest(%(content_ids)s::uuid[], %(htmls)s::text[], %(texts)s::text[])
), email AS (
    INSERT INTO emails_email (id, workspace_id, content_id, sender, from_domain, reply_to, "to", cc, bcc, subject,
                              tags, metadata, created_at, scheduled_for, status, retry_count)
    SELECT id, %(workspace)s, content_id, sender, from_domain, reply_to, "to", cc, bcc, subject,
           tags, metadata, now(), scheduled_for, %(status)s, 0
      FROM json_to_recordset(%(emails)s) AS e (id uuid, content_id uuid, sender text, from_domain text,
           reply_to text, "to" text[], cc text[], bcc text[], subject text, tags text[], metadata jsonb,
           scheduled_for timestamptz)
), recipient AS (
    INSERT INTO emails_recipient (id, email_id, kind, position, address, state, attempts)
    SELECT id, email_id, kind, position, address, %(status)s, 0
      FROM json_to_recordset(%(recipients)s) AS r (id uuid, email_id uuid, kind text, position smallint, address text)
), pending AS (
    INSERT INTO emails_pending (recipient_id, workspace_id, domain, stage, due_at, since, fence, attempts)
    SELECT id, %(workspace)s, domain, %(stage)s, coalesce(due_at, now()), coalesce(due_at, now()), 0, 0
      FROM json_to_recordset(%(recipients)s) AS p (id uuid, domain text, due_at timestamptz)
), event AS (
    INSERT INTO emails_event (id, email_id, kind, payload, created_at)
    SELECT event_id, id, %(status)s, json_build_object('emailId', public_id), now()
      FROM json_to_recordset(%(emails)s) AS v (id uuid, event_id uuid, public_id text)
)
SELECT now()
"""


@dataclass(frozen=True)
class NewContent:
    html: str
    text: str
    id: str = field(default_factory=lambda: new_id("con_"))


@dataclass(frozen=True)
class NewRecipient:
    kind: str
    address: str
    id: str = field(default_factory=new_id)


@dataclass(frozen=True)
class NewEmail:
    """An email as it goes into the database; scheduled_for is None for at once."""

    content_id: str
    sender: str
    from_domain: str
    reply_to: str | None
    to: list[str]
    cc: list[str]
    bcc: list[str]
    subject: str
    tags: list[str]
    metadata: dict[str, Any] | None
    recipients: list[NewRecipient]
    scheduled_for: datetime | None = None
    id: str = field(default_factory=new_id)


def insert_emails(
    workspace: Workspace, *, contents: Sequence[NewContent], emails: Sequence[NewEmail], status: State
) -> datetime:
    """Write emails with contents, recipients, queue rows and first events; return when they were created.

    status: queued or scheduled, the same for all.
    """
    stage = Pending.Stage.SCHEDULED if status is State.SCHEDULED else Pending.Stage.READY
    values: dict[str, Any] = {
        "workspace": to_uuid(workspace.id, prefix="ws_"),
        "status": status.value,
        "stage": stage.value,
        "content_ids": [to_uuid(content.id, prefix="con_") for content in contents],
        "htmls": [content.html for content in contents],
        "texts": [content.text for content in contents],
        "emails": json.dumps([_email_row(email) for email in emails]),
        "recipients": json.dumps([row for email in emails for row in _recipient_rows(email)]),
    }
    with connection.cursor() as cursor:
        cursor.execute(INSERT, values)
        (created_at,) = cursor.fetchone()
    return created_at  # type: ignore[no-any-return]


def _email_row(email: NewEmail) -> dict[str, Any]:
    row = asdict(email)
    del row["recipients"]
    return row | {
        "id": str(to_uuid(email.id)),
        "public_id": email.id,
        "event_id": str(to_uuid(new_id())),
        "content_id": str(to_uuid(email.content_id, prefix="con_")),
        "scheduled_for": email.scheduled_for and email.scheduled_for.isoformat(),
    }


def _recipient_rows(email: NewEmail) -> list[dict[str, Any]]:
    return [
        {
            "id": str(to_uuid(recipient.id)),
            "email_id": str(to_uuid(email.id)),
            "kind": recipient.kind,
            "position": position,
            "address": recipient.address,
            "domain": recipient.address.rpartition("@")[2],
            "due_at": email.scheduled_for and email.scheduled_for.isoformat(),
        }
        for position, recipient in enumerate(email.recipients)
    ]
