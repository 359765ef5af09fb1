"""Email retention: deletes finished emails after the plan's retention (docs/specification.md, Plans and quota).

Counters stay. Deleted emails are counted separately under the key prefix counters.DELETED, so that analytics keep
their numbers and lists can subtract the deleted ones. See docs/decisions/0044.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from core.counters import counters
from core.counters.slices import slices_sql
from core.lib.ids import to_uuid
from core.lib.sql import Fragment, run_together
from emails.states import FINISHED_COUNTERS, RecipientCounter
from emails.upkeep.reconcile import COUNTER_KEYS

BATCH_SIZE = 1000
# Longer than a request may still use a template version that it read before the template was changed.
VERSION_AGE = timedelta(days=1)
# A version of an existing template, which the dashboard can restore (docs/decisions/0132).
RESTORABLE_AGE = timedelta(days=90)

# Oldest first; each page begins after the previous one, so that old unfinished emails (of a suspended workspace, or
# scheduled) are read once per run. At most BATCH_SIZE recipients, but at least one email.
PAGE = """
SELECT array_agg(id), max(created_at), (array_agg(id ORDER BY created_at DESC, id DESC))[1] FROM (
    SELECT created_at, id, sum(cardinality("to") + cardinality(cc) + cardinality(bcc)) OVER page AS recipients,
           row_number() OVER page AS place
      FROM (SELECT created_at, id, "to", cc, bcc FROM emails_email
             WHERE workspace_id = %(workspace)s AND {condition}
               AND (created_at, id) > (%(created_at)s, %(id)s)
             ORDER BY created_at, id LIMIT %(limit)s) oldest
    WINDOW page AS (ORDER BY created_at, id)
) counted WHERE recipients <= %(limit)s OR place = 1
"""
EXPIRED = PAGE.format(condition="created_at < now() - %(age)s AND finished_at < now() - %(age)s")
ALL = PAGE.format(condition="true")
DELETE_ENTRIES = """
DELETE FROM emails_pending WHERE recipient_id IN (
    SELECT recipient_id FROM emails_pending WHERE workspace_id = %s LIMIT %s)
"""
# PostgreSQL keeps the plan of a foreign key check. Planned while the queue was empty, it would scan a queue of a
# million rows once per recipient.
FORCE_INDEX = "SET LOCAL enable_seqscan = off"
# Two transactions that each clear one of the last two references to a content would each see the other's, and neither
# would delete it. A batch takes less than a second.
LOCK_CONTENTS = "SELECT pg_advisory_xact_lock(hashtext('contents of emails'))"
# Recipients before emails, as everywhere (emails.sending.outcomes). Locked rows are left to the next run.
LOCK_FINISHED = """
WITH locked_recipients AS MATERIALIZED (
    SELECT id, email_id FROM emails_recipient WHERE email_id = ANY(%(ids)s::uuid[]) ORDER BY id FOR UPDATE SKIP LOCKED
), whole AS MATERIALIZED (
    SELECT email_id FROM locked_recipients l LEFT JOIN emails_pending p ON p.recipient_id = l.id GROUP BY email_id
    HAVING count(p.recipient_id) = 0
       AND count(*) = (SELECT count(*) FROM emails_recipient r WHERE r.email_id = l.email_id)
), locked AS MATERIALIZED (
    SELECT id, content_id FROM emails_email WHERE id IN (SELECT email_id FROM whole) ORDER BY id FOR UPDATE SKIP LOCKED
)
SELECT array_agg(id), coalesce(array_agg(DISTINCT content_id) FILTER (WHERE content_id IS NOT NULL), '{}')
  FROM locked
"""
DELETE_EVENTS = "DELETE FROM emails_event WHERE email_id = ANY(%(ids)s::uuid[])"
DELETE_RECIPIENTS = """
WITH deleted AS (DELETE FROM emails_recipient WHERE email_id = ANY(%(ids)s::uuid[]) RETURNING state)
SELECT state, count(*) FROM deleted GROUP BY 1
"""
DELETE_EMAILS = f"""
WITH deleted AS (DELETE FROM emails_email WHERE id = ANY(%(ids)s::uuid[]) RETURNING *)
SELECT date_trunc('hour', created_at, 'UTC'), key,
       CASE WHEN is_test OR is_diverted THEN '{{}}'::uuid[] ELSE {slices_sql("deleted")} END, count(*)
  FROM deleted CROSS JOIN {COUNTER_KEYS} WHERE applies GROUP BY 1, 2, 3
"""  # noqa: S608 - constants
# No new references appear in between: resend locks the email that it copies, and these emails are locked here.
UNUSED = "= ANY(%(contents)s::uuid[]) AND NOT EXISTS (SELECT FROM emails_email e WHERE e.content_id = c"
DELETE_ATTACHMENTS = f"DELETE FROM emails_attachment c WHERE content_id {UNUSED}.content_id)"  # noqa: S608
DELETE_CONTENTS = f"DELETE FROM emails_content c WHERE id {UNUSED}.id)"  # noqa: S608
DELETE_VERSIONS = """
DELETE FROM templates_app_templateversion WHERE id IN (
    SELECT id FROM templates_app_templateversion v WHERE retired_at < now() - %s
       AND (template_id IS NULL OR retired_at < now() - %s)
       AND NOT EXISTS (SELECT FROM emails_email WHERE template_version_id = v.id)
       AND NOT EXISTS (SELECT FROM templates_app_templateset WHERE version_id = v.id OR versions @> ARRAY[v.id])
     LIMIT %s)
"""
DELETE_SETS = """
DELETE FROM templates_app_templateset WHERE id IN (
    SELECT id FROM templates_app_templateset s WHERE retired_at < now() - %s
       AND (template_id IS NULL OR retired_at < now() - %s)
       AND NOT EXISTS (SELECT FROM emails_email WHERE template_set_id = s.id) LIMIT %s)
"""
# A batch without emails cannot get any more: they could have been scheduled for 30 days.
BATCH_AGE = timedelta(days=31)
DELETE_BATCHES = """
WITH expired AS (
    SELECT id FROM emails_emailbatch b WHERE created_at < now() - %s
       AND NOT EXISTS (SELECT FROM emails_email WHERE batch_id = b.id) LIMIT %s FOR UPDATE SKIP LOCKED
)
DELETE FROM emails_emailbatch WHERE id IN (SELECT id FROM expired)
"""


def delete_expired_emails(workspace_id: str, age: timedelta) -> Iterator[None]:
    """Delete a workspace's emails that finished more than `age` ago; yield after each transaction."""
    for ids in _pages(EXPIRED, workspace_id, age=age):
        delete_emails(workspace_id, ids)
        yield


def delete_all_emails(workspace_id: str) -> Iterator[None]:
    """Delete a workspace's queue entries and all of its emails; yield after each transaction.

    The result of a delivery attempt in progress is not recorded: its entry is gone.
    """
    workspace = to_uuid(workspace_id, prefix="ws_")
    while _execute(DELETE_ENTRIES, [workspace, BATCH_SIZE]) == BATCH_SIZE:
        yield
    for ids in _pages(ALL, workspace_id):
        delete_emails(workspace_id, ids)
        yield


@transaction.atomic
def delete_emails(workspace_id: str, candidates: Sequence[UUID]) -> list[UUID]:
    """Delete the candidate emails that are not locked and have no queue entries, and count them as deleted.

    Returns the ids of the deleted emails.
    """
    lock = Fragment(LOCK_FINISHED, {"ids": list(candidates)})
    *_, ((ids, contents),) = run_together([Fragment(FORCE_INDEX), Fragment(LOCK_CONTENTS), lock])
    if ids is None:
        return []
    deletes = [DELETE_EVENTS, DELETE_RECIPIENTS, DELETE_EMAILS, DELETE_ATTACHMENTS, DELETE_CONTENTS]
    values = {"ids": ids, "contents": contents}
    _, recipients, emails, *_ = run_together([Fragment(delete, values) for delete in deletes])
    counters.add(_deleted_changes(workspace_id, emails, recipients))
    return list(ids)


def delete_unused_versions() -> Iterator[None]:
    """Delete retired template sets, and then versions, that no email refers to; yield after each batch."""
    while _execute(DELETE_SETS, [VERSION_AGE, RESTORABLE_AGE, BATCH_SIZE]) == BATCH_SIZE:
        yield
    while _execute(DELETE_VERSIONS, [VERSION_AGE, RESTORABLE_AGE, BATCH_SIZE]) == BATCH_SIZE:
        yield


def delete_empty_batches() -> Iterator[None]:
    """Delete old batches without emails; yield after each transaction."""
    while _execute(DELETE_BATCHES, [BATCH_AGE, BATCH_SIZE]) == BATCH_SIZE:
        yield


def _pages(sql: str, workspace_id: str, **parameters: Any) -> Iterator[list[UUID]]:
    """Yield the ids of emails, oldest first. sql: PAGE with a condition."""
    values = {"workspace": to_uuid(workspace_id, prefix="ws_"), "limit": BATCH_SIZE, **parameters}
    last: dict[str, Any] = {"created_at": counters.ALL_TIME, "id": UUID(int=0)}
    while True:
        ((ids, *place),) = _query(sql, values | last)
        if ids is None:
            return
        yield ids
        last = dict(zip(last, place, strict=True))


def _deleted_changes(
    workspace_id: str, emails: Sequence[tuple[Any, ...]], recipients: Sequence[tuple[Any, ...]]
) -> Iterator[counters.CounterChange]:
    for hour, key, slices, number in emails:
        yield counters.CounterKey(workspace_id, hour, counters.DELETED + key, tuple(slices)), number
    for state, number in recipients:
        # Recipients of an erased workspace may be unfinished.
        for count in filter(None, (RecipientCounter.ACCEPTED, FINISHED_COUNTERS.get(state))):
            yield counters.CounterKey(workspace_id, counters.ALL_TIME, counters.DELETED + count.value), number


def _query(sql: str, parameters: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def _execute(sql: str, parameters: Any) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return int(cursor.rowcount)
