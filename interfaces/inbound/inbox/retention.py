"""Retention of caught messages: as long as the plan keeps logs."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import connection

from core.erasing.steps import AFTER, ErasureScope, StepResult
from core.lib.ids import from_uuid, to_uuid
from core.lib.sql import delete_batches, run
from core.workspaces.plans import BUILT_IN
from interfaces.inbound.inbox.models import CaughtMail
from interfaces.inbound.inbox.reading import read_header

BATCH_SIZE = 200
CLEAR_AT_ONCE = 10_000
FIRST = UUID(int=0)
# Small batches, because a message can have megabytes.
DELETE = """
WITH expired AS (
    SELECT id FROM inbox_caughtmail WHERE workspace_id IS NOT DISTINCT FROM %(workspace)s
       AND received_at < now() - %(age)s ORDER BY received_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
)
DELETE FROM inbox_caughtmail WHERE id IN (SELECT id FROM expired)
"""
# The quoted characters of `=3Dada@example.com` and `%3Cada@example.com` do not belong to a longer address.
BEFORE = r"(^|[^\w.+-]|[=%][0-9a-f]{2})"
FIND_NAMED = r"""
SELECT m.id, named.addresses FROM inbox_caughtmail m CROSS JOIN LATERAL (
       SELECT array_agg(address) AS addresses
         FROM unnest(%(addresses)s::text[]) AS a (address), encode(convert_to(address, 'UTF8'), 'escape') AS escaped,
              lower(encode(m.source, 'escape')) AS source
        WHERE lower(m.recipient) = address OR position(escaped in source) > 0
          AND source ~ concat(%(before)s::text, regexp_replace(escaped, '(\W)', '\\\1', 'g'), %(after_it)s::text)) named
 WHERE m.workspace_id = %(workspace)s AND named.addresses IS NOT NULL AND m.id > %(after)s ORDER BY m.id LIMIT %(limit)s
"""
# System email belongs to no plan.
SYSTEM_MAIL_RETENTION = BUILT_IN["free"].retention


def delete_expired_mail(workspace_id: str, age: timedelta) -> Iterator[None]:
    """Delete a workspace's caught messages older than `age`; yield after each batch."""
    return _batches(workspace=to_uuid(workspace_id, prefix="ws_"), age=age)


def delete_expired_system_mail() -> Iterator[None]:
    return _batches(workspace=None, age=SYSTEM_MAIL_RETENTION)


def _batches(**values: Any) -> Iterator[None]:
    return delete_batches(DELETE, {"limit": BATCH_SIZE, **values}, size=BATCH_SIZE)


def clear_inbox(workspace_id: str) -> int:
    """Delete the caught messages of a workspace, at most CLEAR_AT_ONCE; return their number."""
    batches = range(CLEAR_AT_ONCE // BATCH_SIZE)
    values: dict[str, Any] = {"workspace": to_uuid(workspace_id, prefix="ws_"), "age": timedelta(), "limit": BATCH_SIZE}
    deleted = 0
    for _ in batches:
        with connection.cursor() as cursor:
            cursor.execute(DELETE, values)
            deleted += cursor.rowcount
            if cursor.rowcount < BATCH_SIZE:
                break
    return deleted


def remove_contents(email_ids: Sequence[UUID]) -> None:
    """Keep only the headers of the caught messages of emails."""
    messages = CaughtMail.objects.filter(email_id__in=[from_uuid(id_) for id_ in email_ids], keeps_content=True)
    for mail in messages.only("source").iterator(chunk_size=1):
        CaughtMail.objects.filter(id=mail.id).update(source=read_header(bytes(mail.source)), keeps_content=False)


def find_named(scope: ErasureScope, *, after: UUID = FIRST) -> list[tuple[UUID, list[str]]]:
    """Return a batch of the caught messages that name one of the addresses, in the order of their ids."""
    values = {
        "workspace": to_uuid(scope.workspace_id, prefix="ws_"),
        "addresses": list(scope.addresses),
        "before": BEFORE,
        "after_it": AFTER,
        "after": after,
        "limit": BATCH_SIZE,
    }
    return [(id_, addresses) for id_, addresses in run(FIND_NAMED, values)]


def erase_mail(scope: ErasureScope, _place: Any) -> StepResult:
    """Delete a batch of the caught messages that name one of the addresses."""
    found = find_named(scope)
    CaughtMail.objects.filter(id__in=[from_uuid(id_, prefix="mail_") for id_, _ in found]).delete()
    result = StepResult(place=[] if len(found) == BATCH_SIZE else None)
    for _, addresses in found:
        result.add(addresses, caughtMessages=1)
    return result


def erase_system_messages(address: str) -> None:
    """Delete the caught system emails to an address."""
    CaughtMail.objects.filter(workspace=None, recipient__iexact=address).delete()
