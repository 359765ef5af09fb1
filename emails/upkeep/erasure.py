"""Erasure of people's data by address: emails with their timelines, deliveries of webhooks and requests.

An email is deleted as a whole, because its subject and content may name the person; it also disappears from the lists
of its workspace, not from the mailboxes of its other recipients. Counters stay, as with retention. See
docs/decisions/0063 and 0353.
"""

import json
from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from core.erasing.steps import ErasureScope, NamedRows, StepResult
from core.lib.datetimes import parse_datetime
from core.lib.ids import from_uuid, to_uuid
from core.lib.sql import run
from emails.models import Acceptance, Recipient
from emails.upkeep.retention import delete_emails
from events.models import Event
from webhooks.models import WebhookDelivery, WebhookEvent

EMAILS = 200
SCANNED_EMAILS = 1_000
SCANNED_ROWS = 2_000
START = "1970-01-01T00:00:00Z"
FIND_SENT = """
SELECT r.email_id FROM emails_recipient r JOIN emails_email e ON e.id = r.email_id
 WHERE lower(r.address) = %(address)s AND e.workspace_id = %(workspace)s AND r.email_id > %(after)s
 GROUP BY r.email_id ORDER BY r.email_id LIMIT %(limit)s
"""
# Pages of all emails: an index for this alone would slow down every accepted email. Many people share one pass. A
# message that was submitted over SMTP may name people in its fields who are not in its envelope.
SCAN_EMAILS = r"""
WITH page AS MATERIALIZED (
    SELECT created_at, id,
           lower(concat_ws(' ', sender, reply_to, array_to_string("to" || cc || bcc, ' '), subject, headers, metadata,
                           template_data)) AS text
      FROM emails_email WHERE workspace_id = %(workspace)s AND (created_at, id) > (%(created_at)s, %(id)s)
     ORDER BY created_at, id LIMIT %(limit)s
)
SELECT created_at, id, CASE WHEN text ~ %(pattern)s THEN text END FROM page ORDER BY created_at, id
"""
SCAN_KEYS = """
WITH page AS MATERIALIZED (
    SELECT id, key, answer FROM emails_acceptance WHERE workspace_id = %(workspace)s AND key > %(key)s
     ORDER BY key LIMIT %(limit)s
)
SELECT key, id, lower(key) LIKE ANY(%(likes)s), CASE WHEN lower(answer::text) LIKE ANY(%(likes)s) THEN answer END
  FROM page ORDER BY key
"""
# Suppressions, and recipients that were suppressed.
SCAN_EVENTS = """
WITH page AS MATERIALIZED (
    SELECT created_at, number, id, payload FROM emails_event
     WHERE workspace_id = %(workspace)s AND email_id IS NULL AND (created_at, number) > (%(created_at)s, %(number)s)
     ORDER BY created_at, number LIMIT %(limit)s
)
SELECT created_at, number, id, CASE WHEN lower(payload::text) ~ %(pattern)s THEN payload::text END
  FROM page ORDER BY created_at, number
"""
DELETE_EVENTS = "DELETE FROM emails_event WHERE id = ANY(%s)"
# The table of versions before 1.0.
DELETE_FORMER = """
DELETE FROM workspaces_workspaceevent WHERE workspace_id = %(workspace)s
   AND (lower(payload->>'email') = ANY(%(addresses)s) OR lower(payload->>'to') = ANY(%(addresses)s))
"""
FIND_FORMER = """
SELECT id, kind, payload, created_at FROM workspaces_workspaceevent WHERE workspace_id = %(workspace)s
   AND (lower(payload->>'email') = ANY(%(addresses)s) OR lower(payload->>'to') = ANY(%(addresses)s))
 ORDER BY created_at, id
"""
DELETE_REQUESTS = "DELETE FROM request_log_apirequest WHERE email_id = ANY(%s)"


def find_sent(scope: ErasureScope, address: str, *, after: UUID, limit: int) -> list[UUID]:
    """Return the emails to an address, in the order of their ids."""
    values = {"address": address, "workspace": _workspace(scope), "after": after, "limit": limit}
    return [id_ for (id_,) in run(FIND_SENT, values)]


def scan_emails(scope: ErasureScope, place: Any) -> NamedRows[UUID]:
    """Return a page of the emails of the workspace that name an address outside of their content."""
    created_at, after = place or (START, from_uuid(UUID(int=0)))
    values = {
        "workspace": _workspace(scope),
        "created_at": parse_datetime(created_at),
        "id": to_uuid(after),
        "limit": SCANNED_EMAILS,
        "pattern": scope.pattern,
    }
    rows = run(SCAN_EMAILS, values)
    named = {id_: scope.named_in(text) for _, id_, text in rows if text}
    return NamedRows(named, [rows[-1][0].isoformat(), from_uuid(rows[-1][1])] if len(rows) == SCANNED_EMAILS else None)


def find_former_events(scope: ErasureScope) -> list[tuple[str, str, Any, datetime]]:
    """Return the events about the addresses that versions before 1.0 recorded: id, kind, payload and time."""
    rows = run(FIND_FORMER, {"workspace": _workspace(scope), "addresses": list(scope.addresses)})
    return [
        (from_uuid(id_, prefix="evt_"), kind, json.loads(payload) if isinstance(payload, str) else payload, created_at)
        for id_, kind, payload, created_at in rows
    ]


def scan_workspace_events(scope: ErasureScope, place: Any) -> NamedRows[UUID]:
    """Return a page of the events without an email that name an address."""
    created_at, number = place or (START, 0)
    values = {
        "workspace": _workspace(scope),
        "created_at": parse_datetime(created_at),
        "number": number,
        "limit": SCANNED_ROWS,
        "pattern": scope.pattern,
    }
    rows = run(SCAN_EVENTS, values)
    named = {id_: scope.named_in(text) for *_, id_, text in rows if text}
    return NamedRows(named, [rows[-1][0].isoformat(), rows[-1][1]] if len(rows) == SCANNED_ROWS else None)


def scan_keys(scope: ErasureScope, place: Any) -> tuple[list[tuple[Any, ...]], Any]:
    """Return a page of idempotency keys: the key, its row, whether it has an address, and an answer that has one.

    The second value is where the next page begins, or None.
    """
    likes = [f"%{_escape_like(address)}%" for address in scope.addresses]
    values = {"workspace": _workspace(scope), "key": place or "", "limit": SCANNED_ROWS, "likes": likes}
    rows = run(SCAN_KEYS, values)
    return rows, rows[-1][0] if len(rows) == SCANNED_ROWS else None


def erase_sent(scope: ErasureScope, place: Any) -> StepResult:
    """Delete the emails to the addresses, found by their index, one address after the other."""
    index, after = place or (0, from_uuid(UUID(int=0)))
    address = scope.addresses[index]
    found = find_sent(scope, address, after=to_uuid(after), limit=EMAILS)
    result = StepResult()
    deleted = _delete({id_: {address} for id_ in found}, scope, result)
    result.waiting[address] += len(found) - len(deleted)
    if len(found) == EMAILS:
        result.place = [index, from_uuid(found[-1])]
    elif index + 1 < len(scope.addresses):
        result.place = [index + 1, from_uuid(UUID(int=0))]
    return result


def erase_mentions(scope: ErasureScope, place: Any) -> StepResult:
    """Delete the emails of others that name an address in a field, the subject, metadata or template data."""
    page = scan_emails(scope, place)
    result = StepResult(place=page.place)
    deleted = _delete(page.named, scope, result)
    left = [id_ for id_ in page.named if id_ not in deleted]
    recipients = Recipient.objects.filter(email__in=map(from_uuid, left)).values_list("email_id", "address")
    # Those to the person are counted by erase_sent.
    sent = {(to_uuid(email_id), address.lower()) for email_id, address in recipients}
    for id_ in left:
        result.waiting.update(address for address in page.named[id_] if (id_, address) not in sent)
    return result


def erase_from_keys(scope: ErasureScope, place: Any) -> StepResult:
    """Delete idempotency keys with an address, such as `welcome-ada@example.com`, and blank it in stored responses.

    Keys of blanked responses keep working.
    """
    rows, next_place = scan_keys(scope, place)
    named = {id_: key for key, id_, is_named, _ in rows if is_named}
    Acceptance.objects.filter(id__in=named).delete()
    result = StepResult(place=next_place)
    for key in named.values():
        result.add([address for address in scope.addresses if address in key.lower()], idempotencyKeys=1)
    changed = {row.id: row for row in Acceptance.objects.filter(id__in=[id_ for _, id_, _, answer in rows if answer])}
    for row in changed.values():
        Acceptance.objects.filter(id=row.id).update(answer=scope.replace_in(row.answer))
    return result


def erase_workspace_events(scope: ErasureScope, place: Any) -> StepResult:
    """Delete the events of the workspace about the addresses, with their webhook deliveries."""
    if place is None:
        run(DELETE_FORMER, {"workspace": _workspace(scope), "addresses": list(scope.addresses)})
    page = scan_workspace_events(scope, place)
    result = StepResult(place=page.place)
    event_ids = {id_: from_uuid(id_, prefix="evt_") for id_ in page.named}
    deliveries = _count_deliveries(list(event_ids.values()))
    for id_, addresses in page.named.items():
        result.add(addresses, events=1, webhookDeliveries=deliveries[event_ids[id_]])
    run(DELETE_EVENTS, [list(event_ids)])
    WebhookEvent.objects.delete_events(list(event_ids.values()))
    return result


def _delete(named: dict[UUID, set[str]], scope: ErasureScope, result: StepResult) -> set[UUID]:
    """Delete emails that have no work left, count what went for the addresses of each, and return their ids."""
    if not named:
        return set()
    events = list(Event.objects.filter(email__in=map(from_uuid, named)).values_list("id", "email_id"))
    deliveries = _count_deliveries([event_id for event_id, _ in events])
    deleted = delete_emails(scope.workspace_id, list(named))
    deleted_ids = set(map(from_uuid, deleted))
    gone = [(event_id, email_id) for event_id, email_id in events if email_id in deleted_ids]
    WebhookEvent.objects.delete_events([event_id for event_id, _ in gone])
    for id_ in deleted:
        result.add(named[id_], emails=1)
    for event_id, email_id in gone:
        result.add(named[to_uuid(email_id)], events=1, webhookDeliveries=deliveries[event_id])
    requests = _delete_requests(deleted)
    for address in set().union(*(named[id_] for id_ in deleted)) if deleted else ():
        result.add([address], apiRequests=requests)
    return set(deleted)


def _count_deliveries(event_ids: Collection[str]) -> Counter[str]:
    return Counter(WebhookDelivery.objects.filter(event__in=event_ids).values_list("event_id", flat=True))


def _delete_requests(email_ids: Sequence[UUID]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(DELETE_REQUESTS, [list(email_ids)])
        return int(cursor.rowcount)


def _workspace(scope: ErasureScope) -> UUID:
    return to_uuid(scope.workspace_id, prefix="ws_")


def _escape_like(text: str) -> str:
    return text.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")
