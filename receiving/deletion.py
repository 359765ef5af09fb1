"""Deletion of received emails: by request, by retention, of an erased address, and of a workspace.

A message and its content go with the last received email that shares them. Feed entries and counters stay.
"""

from collections.abc import Collection, Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction

from core.erasing.steps import ErasureScope, NamedRows, StepResult
from core.lib.datetimes import parse_datetime
from core.lib.email_addresses import normalize_address
from core.lib.ids import from_uuid, to_uuid
from core.lib.sql import run
from receiving import content
from receiving.arrival.usage import Freed, release_storage
from receiving.models import ForwardTarget
from webhooks.models import WebhookEvent
from webhooks.services import empty_bodies, find_ended_events

BATCH_SIZE = 100
# Messages before emails, as when a message is read.
LOCK = """
SELECT m.id FROM receiving_message m
 WHERE m.id IN (SELECT message_id FROM receiving_receivedemail WHERE id = ANY(%s)) ORDER BY m.id FOR UPDATE
"""
EVENTS = "array_remove(ARRAY[event_id, unread_event_id], NULL)"
DELETE = f"""
DELETE FROM receiving_receivedemail e USING receiving_message m WHERE e.id = ANY(%s) AND m.id = e.message_id
RETURNING e.workspace_id, host(m.remote_ip), e.size, {EVENTS}
"""  # noqa: S608 - a constant
DELETE_FORWARDS = "DELETE FROM receiving_forward WHERE email_id = ANY(%s)"
DELETE_MESSAGES = """
DELETE FROM receiving_message m WHERE id = ANY(%s)
   AND NOT EXISTS (SELECT FROM receiving_receivedemail e WHERE e.message_id = m.id) RETURNING content_id
"""
# Another workspace that has the message takes the place of one that has it no more.
MOVE_MESSAGES = """
UPDATE receiving_message m SET workspace_id = e.workspace_id FROM receiving_receivedemail e
 WHERE m.id = ANY(%s) AND e.message_id = m.id
   AND NOT EXISTS (SELECT FROM receiving_receivedemail o WHERE o.message_id = m.id AND o.workspace_id = m.workspace_id)
"""
EXPIRED = """
SELECT id FROM receiving_receivedemail
 WHERE workspace_id = %(workspace)s AND (expires_at < now() OR received_at < now() - %(age)s)
 ORDER BY expires_at LIMIT %(limit)s
"""
# A message that is being read is due again two minutes later at the most.
NOT_KEPT = f"""
SELECT id, {EVENTS} FROM receiving_receivedemail
 WHERE store_days = 0 AND processed_at IS NOT NULL AND id > %(after)s ORDER BY id LIMIT %(limit)s
"""  # noqa: S608 - a constant
SCANNED_EMAILS = 500
START = "1970-01-01T00:00:00Z"
# As recipient, sender, and in From, To, Cc and Reply-To; answers to an email to the address, too.
SCAN = """
WITH page AS MATERIALIZED (
    SELECT e.received_at, e.id,
           lower(concat_ws(' ', e.recipient, e.reply_address, m.envelope_from, m.sender, m.addresses)) AS text
      FROM receiving_receivedemail e JOIN receiving_message m ON m.id = e.message_id
     WHERE e.workspace_id = %(workspace)s AND (e.received_at, e.id) > (%(received_at)s, %(id)s)
     ORDER BY e.received_at, e.id LIMIT %(limit)s
)
SELECT received_at, id, CASE WHEN text ~ %(pattern)s THEN text END FROM page ORDER BY received_at, id
"""
DELETE_EVENTS = "DELETE FROM emails_event WHERE id = ANY(%s)"


@transaction.atomic
def delete_emails(email_ids: Collection[str]) -> int:
    """Delete received emails with their webhook deliveries; return their number."""
    deleted, events = _delete([to_uuid(email_id, prefix="inb_") for email_id in email_ids])
    WebhookEvent.objects.delete_events(events)
    return deleted


def delete_expired_emails(workspace_id: str, age: timedelta) -> Iterator[None]:
    """Delete a workspace's emails that are past their days or older than `age`; yield after each batch."""
    values = {"workspace": to_uuid(workspace_id, prefix="ws_"), "age": age, "limit": BATCH_SIZE}
    while ids := [id_ for (id_,) in run(EXPIRED, values)]:
        _delete_with_bodies(ids)
        yield


def delete_delivered_emails() -> Iterator[None]:
    """Delete the emails of routes with storeDays 0 whose deliveries have all ended; yield after each batch."""
    after = UUID(int=0)
    while rows := run(NOT_KEPT, {"after": after, "limit": BATCH_SIZE}):
        events = {id_: {from_uuid(event, prefix="evt_") for event in found} for id_, found in rows}
        ended = find_ended_events(set().union(*events.values()))
        ids = [id_ for id_, found in events.items() if found and found <= ended]
        _delete_with_bodies(ids)
        after = rows[-1][0]
        yield


def scan_received(scope: ErasureScope, place: Any) -> NamedRows[UUID]:
    """Return a page of the received emails to, from and about the addresses, and of answers to emails to them."""
    received_at, after = place or (START, from_uuid(UUID(int=0), prefix="inb_"))
    values = {
        "workspace": to_uuid(scope.workspace_id, prefix="ws_"),
        "received_at": parse_datetime(received_at),
        "id": to_uuid(after, prefix="inb_"),
        "limit": SCANNED_EMAILS,
        "pattern": scope.pattern,
    }
    rows = run(SCAN, values)
    named = {id_: scope.named_in(text) for _, id_, text in rows if text}
    has_more = len(rows) == SCANNED_EMAILS
    return NamedRows(named, [rows[-1][0].isoformat(), from_uuid(rows[-1][1], prefix="inb_")] if has_more else None)


def erase_received(scope: ErasureScope, place: Any) -> StepResult:
    """Delete received emails to, from and about the addresses, and those that answer an email to them.

    Nothing is forwarded to them any more.
    """
    page = scan_received(scope, place)
    _, events = _delete(list(page.named))
    run(DELETE_EVENTS, [[to_uuid(event, prefix="evt_") for event in events]])
    WebhookEvent.objects.delete_events(events)
    targets = map(normalize_address, scope.addresses)
    ForwardTarget.objects.filter(workspace=scope.workspace_id, address__in=targets).delete()
    result = StepResult(place=page.place)
    for addresses in page.named.values():
        result.add(addresses, receivedEmails=1)
    return result


@transaction.atomic
def _delete_with_bodies(ids: Collection[UUID]) -> None:
    """Delete emails; the log of their deliveries stays, without the content."""
    _, events = _delete(ids)
    empty_bodies(events)


def _delete(ids: Collection[UUID]) -> tuple[int, list[str]]:
    """Delete emails in the caller's transaction; return their number and the ids of their events."""
    if not ids:
        return 0, []
    messages = [id_ for (id_,) in run(LOCK, [list(ids)])]
    run(DELETE_FORWARDS, [list(ids)])
    deleted: list[tuple[Any, ...]] = run(DELETE, [list(ids)])
    release_storage(
        Freed(from_uuid(workspace_id, prefix="ws_"), address, size) for workspace_id, address, size, _ in deleted
    )
    contents = run(DELETE_MESSAGES, [messages])
    run(MOVE_MESSAGES, [messages])
    content.delete([from_uuid(id_, prefix=content.PREFIX) for (id_,) in contents])
    return len(deleted), [from_uuid(event, prefix="evt_") for *_, found in deleted for event in found]
