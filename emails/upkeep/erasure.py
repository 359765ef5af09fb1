"""Erasure of a person's data by address: its emails, their timelines and their webhook deliveries.

An email is deleted as a whole, because its subject and content may name the person; it also disappears from the lists
of its other recipients' workspace, not from their mailboxes. Counters stay, as with retention, and so does a
suppression: without it, the next send would reach a person who asked for the opposite (docs/decisions/0063).
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from core.lib.coded_texts import CodedText
from core.lib.ids import from_uuid
from core.lib.sql import run
from core.workspaces.audit import AuditAction, record_action
from core.workspaces.models import Workspace
from emails.models import Acceptance
from emails.upkeep.retention import BATCH_SIZE, delete_emails
from events.models import Event
from webhooks.models import WebhookEvent

ERASED = "erased@invalid"
# Searches of the staff.
ERASE_SEARCHES = """
UPDATE workspaces_auditentry SET about = %(erased)s
 WHERE act = 'emails_searched' AND position(lower(%(address)s) in lower(about)) > 0
"""
# Table scans: an index for this query alone would slow down every accepted email. A message that was submitted over
# SMTP may name people in its fields who are not in its envelope.
FIND_EMAILS = r"""
SELECT e.workspace_id, e.id FROM emails_recipient r JOIN emails_email e ON e.id = r.email_id
 WHERE lower(r.address) = lower(%(address)s)
UNION
SELECT workspace_id, id FROM emails_email
 WHERE lower(concat_ws(' ', array_to_string("to", ' '), array_to_string(cc, ' '), headers::text)) ~ %(pattern)s
"""
FIND_ANSWERS = "SELECT id FROM emails_acceptance WHERE position(lower(%s) in lower(answer::text)) > 0"

# Suppressions, and recipients that were suppressed; also in the table of versions before 1.0.
DELETE_EVENTS = """
WITH former AS (
    DELETE FROM workspaces_workspaceevent WHERE lower(%(address)s) IN (lower(payload->>'email'), lower(payload->>'to'))
)
DELETE FROM emails_event
 WHERE email_id IS NULL AND lower(%(address)s) IN (lower(payload->>'email'), lower(payload->>'to')) RETURNING id
"""
DELETE_KEYS = "DELETE FROM emails_acceptance WHERE position(lower(%s) in lower(key)) > 0"


@dataclass(frozen=True)
class ErasedEmails:
    """Numbers of deleted emails and of emails still being sent; cancel those, or run the erasure again later."""

    emails: int = 0
    in_progress: int = 0


def erase_emails(address: str) -> ErasedEmails:
    """Delete every finished email to an address, or that names it, in all workspaces, one batch per transaction."""
    ids_by_workspace: dict[UUID, list[UUID]] = defaultdict(list)
    for workspace_id, email_id in _find_emails(address):
        ids_by_workspace[workspace_id].append(email_id)
    deleted = sum(_erase(workspace_id, email_ids) for workspace_id, email_ids in ids_by_workspace.items())
    _erase_events(address)
    _erase_from_keys(address)
    _erase_from_answers(address)
    run(ERASE_SEARCHES, {"erased": ERASED, "address": address})
    return ErasedEmails(deleted, sum(map(len, ids_by_workspace.values())) - deleted)


@transaction.atomic
def _find_emails(address: str) -> list[tuple[Any, ...]]:
    """Return the workspace and the id of each email to an address, or with it in a field but not in a longer one."""
    run("SET LOCAL statement_timeout = 0")
    # As in _erase_from_answers, in the syntax of PostgreSQL.
    pattern = rf"(^|[^\w.+-]){re.escape(address.lower())}($|[^\w.-])"
    return run(FIND_EMAILS, {"address": address, "pattern": pattern})


def _erase(workspace_id: UUID, email_ids: Sequence[UUID]) -> int:
    workspace = Workspace.objects.get(id=from_uuid(workspace_id, prefix="ws_"))
    count = 0
    for start in range(0, len(email_ids), BATCH_SIZE):
        with transaction.atomic():
            count += _erase_batch(workspace.id, email_ids[start : start + BATCH_SIZE])
    # Only the number: the audit log outlives the erased data.
    record_action(workspace, AuditAction.ADDRESS_ERASED, about=CodedText("workspaces.email_count", count=count))
    return count


def _erase_batch(workspace_id: str, email_ids: Sequence[UUID]) -> int:
    events = list(Event.objects.filter(email__in=map(from_uuid, email_ids)).values_list("id", "email_id"))
    deleted_ids = set(map(from_uuid, delete_emails(workspace_id, email_ids)))
    WebhookEvent.objects.delete_events([event_id for event_id, email_id in events if email_id in deleted_ids])
    return len(deleted_ids)


def _erase_events(address: str) -> None:
    """Delete the events of a workspace about the address, with their webhook deliveries."""
    with transaction.atomic():
        deleted = run(DELETE_EVENTS, {"address": address})
        WebhookEvent.objects.delete_events([from_uuid(event_id, prefix="evt_") for (event_id,) in deleted])


def _erase_from_keys(address: str) -> None:
    """Delete idempotency keys that contain the address, such as `welcome-ada@example.com`."""
    with connection.cursor() as cursor:
        cursor.execute(DELETE_KEYS, [address])


def _erase_from_answers(address: str) -> None:
    """Remove the address from stored idempotent responses; their keys keep working."""
    with connection.cursor() as cursor:
        cursor.execute(FIND_ANSWERS, [address])
        ids = [id_ for (id_,) in cursor.fetchall()]
    # Does not match within a longer address.
    pattern = re.compile(rf"(?<![\w.+-]){re.escape(address)}(?![\w.-])", re.IGNORECASE)
    for acceptance in Acceptance.objects.filter(id__in=ids):
        Acceptance.objects.filter(id=acceptance.id).update(answer=_replace_address(acceptance.answer, pattern))


def _replace_address(value: Any, address: re.Pattern[str]) -> Any:
    if isinstance(value, dict):
        return {key: _replace_address(member, address) for key, member in value.items()}
    if isinstance(value, list):
        return [_replace_address(member, address) for member in value]
    return address.sub(ERASED, value) if isinstance(value, str) else value
