"""Erase what is kept of a person, by address: the emails to it, their timelines, and what webhooks tell of them.

An email goes as a whole, for its words and its subject may name the person; whoever else it was for loses it from the
list, not from his mailbox. Counters stay, as with retention, and so does a suppression: without it the next send would
reach a person who asked for the opposite (docs/decisions/0063).
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from emails.models import Acceptance, Event
from emails.upkeep.retention import AT_ONCE, delete_emails
from lib.ids import from_uuid
from webhooks.models import WebhookEvent
from workspaces.audit import Act, note
from workspaces.models import Workspace

ERASED = "erased@invalid"
# By a scan: an index that only this would use costs every accepted email something.
TO_PERSON = """
SELECT DISTINCT e.workspace_id, e.id FROM emails_recipient r JOIN emails_email e ON e.id = r.email_id
 WHERE lower(r.address) = lower(%s)
"""
ANSWERS = "SELECT id FROM emails_acceptance WHERE position(lower(%s) in lower(answer::text)) > 0"


@dataclass(frozen=True)
class Erased:
    """How many emails are gone, and how many are still on their way: cancel them, or come again."""

    emails: int = 0
    left: int = 0


def erase_emails(address: str) -> Erased:
    """Delete every finished email to an address, in all workspaces, a batch a transaction."""
    found: dict[UUID, list[UUID]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(TO_PERSON, [address])
        for workspace_id, email_id in cursor.fetchall():
            found[workspace_id].append(email_id)
    deleted = sum(_erase(workspace_id, email_ids) for workspace_id, email_ids in found.items())
    _erase_answers(address)
    return Erased(deleted, sum(map(len, found.values())) - deleted)


def _erase(workspace_id: UUID, email_ids: Sequence[UUID]) -> int:
    workspace = Workspace.objects.get(id=from_uuid(workspace_id, prefix="ws_"))
    count = 0
    for start in range(0, len(email_ids), AT_ONCE):
        with transaction.atomic():
            count += _erase_batch(workspace.id, email_ids[start : start + AT_ONCE])
    # Not which: the log outlives what it tells of.
    note(workspace, Act.ADDRESS_ERASED, about=f"{count} emails")
    return count


def _erase_batch(workspace_id: str, email_ids: Sequence[UUID]) -> int:
    events = list(Event.objects.filter(email__in=map(from_uuid, email_ids)).values_list("id", "email_id"))
    deleted = delete_emails(workspace_id, f"{{{','.join(map(str, email_ids))}}}")
    gone = {from_uuid(UUID(email_id)) for email_id in deleted.strip("{}").split(",") if email_id}
    WebhookEvent.objects.delete_told([event_id for event_id, email_id in events if email_id in gone])
    return len(gone)


def _erase_answers(address: str) -> None:
    """Take the address out of the answers that idempotency keys keep; the keys go on working."""
    with connection.cursor() as cursor:
        cursor.execute(ANSWERS, [address])
        ids = [id_ for (id_,) in cursor.fetchall()]
    # Not within a longer one.
    whole = re.compile(rf"(?<![\w.+-]){re.escape(address)}(?![\w.-])", re.IGNORECASE)
    for acceptance in Acceptance.objects.filter(id__in=ids):
        Acceptance.objects.filter(id=acceptance.id).update(answer=_without(acceptance.answer, whole))


def _without(value: Any, address: re.Pattern[str]) -> Any:
    if isinstance(value, dict):
        return {key: _without(member, address) for key, member in value.items()}
    if isinstance(value, list):
        return [_without(member, address) for member in value]
    return address.sub(ERASED, value) if isinstance(value, str) else value
