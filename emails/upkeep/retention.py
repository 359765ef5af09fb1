"""Delete emails that were finished longer ago than the plan keeps them (CONTRACT section 2, docs/decisions/0044).

The counters stay: what is taken is counted beside them, behind tally.GONE, so that analytics keep their figures
and lists count what there is.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from analytics import counters
from emails.queue_stats import Change, Count, finished
from emails.states import State
from emails.upkeep.reconcile import FACTS
from lib.ids import to_uuid
from lib.sql import Statement, run_together

AT_ONCE = 1000
NONE = "{}"
# Longer than a template may still be in the hands of a request that read it before it was changed.
VERSION_AGE = timedelta(days=1)

# The oldest come first, and each page begins behind the last: what is old and not finished (held mail of a
# suspended workspace, schedules) is passed once a run. At most AT_ONCE recipients, but at least one email.
EXPIRED = """
SELECT array_agg(id)::text, max(created_at), (array_agg(id ORDER BY created_at DESC, id DESC))[1] FROM (
    SELECT created_at, id, sum(cardinality("to") + cardinality(cc) + cardinality(bcc)) OVER page AS recipients,
           row_number() OVER page AS place
      FROM (SELECT created_at, id, "to", cc, bcc FROM emails_email
             WHERE workspace_id = %(workspace)s AND created_at < now() - %(age)s AND finished_at < now() - %(age)s
               AND (created_at, id) > (%(created_at)s, %(id)s)
             ORDER BY created_at, id LIMIT %(limit)s) oldest
    WINDOW page AS (ORDER BY created_at, id)
) counted WHERE recipients <= %(limit)s OR place = 1
"""
# The database's own look-ups of foreign keys keep the plan of the first: made while the queue was empty it would scan
# the queue of a million from end to end, once for each recipient.
BY_INDEX = "SET LOCAL enable_seqscan = off"
# Recipients before emails, as everywhere (emails.sending.outcomes); what somebody else holds is left to the next run.
HOLD = """
WITH held AS MATERIALIZED (
    SELECT id, email_id FROM emails_recipient WHERE email_id = ANY(%(ids)s::uuid[]) ORDER BY id FOR UPDATE SKIP LOCKED
), whole AS MATERIALIZED (
    SELECT email_id FROM held LEFT JOIN emails_pending p ON p.recipient_id = held.id GROUP BY email_id
    HAVING count(p.recipient_id) = 0
       AND count(*) = (SELECT count(*) FROM emails_recipient r WHERE r.email_id = held.email_id)
), locked AS MATERIALIZED (
    SELECT id, content_id FROM emails_email WHERE id IN (SELECT email_id FROM whole) ORDER BY id FOR UPDATE SKIP LOCKED
)
SELECT array_agg(id)::text, coalesce(array_agg(DISTINCT content_id) FILTER (WHERE content_id IS NOT NULL), '{}')::text
  FROM locked
"""
DELETE_EVENTS = "DELETE FROM emails_event WHERE email_id = ANY(%(ids)s::uuid[])"
DELETE_RECIPIENTS = """
WITH gone AS (DELETE FROM emails_recipient WHERE email_id = ANY(%(ids)s::uuid[]) RETURNING state)
SELECT state, count(*) FROM gone GROUP BY 1
"""
DELETE_EMAILS = f"""
WITH gone AS (DELETE FROM emails_email WHERE id = ANY(%(ids)s::uuid[]) RETURNING *)
SELECT date_trunc('hour', created_at, 'UTC'), key, count(*)
  FROM gone CROSS JOIN LATERAL {FACTS} WHERE holds GROUP BY 1, 2
"""  # noqa: S608 - a constant
# Nobody begins to refer to them meanwhile: who copies an email (resend) holds it first, and all of these are ours.
UNUSED = "= ANY(%(contents)s::uuid[]) AND NOT EXISTS (SELECT FROM emails_email e WHERE e.content_id = c"
DELETE_ATTACHMENTS = f"DELETE FROM emails_attachment c WHERE content_id {UNUSED}.content_id)"  # noqa: S608
DELETE_CONTENTS = f"DELETE FROM emails_content c WHERE id {UNUSED}.id)"  # noqa: S608
DELETE_VERSIONS = """
DELETE FROM templates_app_templateversion WHERE id IN (
    SELECT id FROM templates_app_templateversion v WHERE retired_at < now() - %s
       AND NOT EXISTS (SELECT FROM emails_email WHERE template_version_id = v.id) LIMIT %s)
"""


def expired_emails(workspace_id: str, age: timedelta) -> Iterator[None]:
    """Delete a workspace's emails that were finished before `age` ago; yield after each transaction."""
    for ids in _pages(workspace_id, age):
        delete_emails(workspace_id, ids)
        yield


@transaction.atomic
def delete_emails(workspace_id: str, candidates: str) -> str:
    """Delete those of a workspace's emails that nobody holds and that have no work left, and count them as gone.

    candidates: their ids as PostgreSQL writes an array, `{…,…}`; those that were deleted are returned likewise.
    """
    _, ((ids, contents),) = run_together([Statement(BY_INDEX), Statement(HOLD, {"ids": candidates})])
    if ids is None:
        return NONE
    deletes = [DELETE_EVENTS, DELETE_RECIPIENTS, DELETE_EMAILS, DELETE_ATTACHMENTS, DELETE_CONTENTS]
    values = {"ids": ids, "contents": contents}
    _, recipients, emails, *_ = run_together([Statement(delete, values) for delete in deletes])
    counters.add(_gone(workspace_id, emails, recipients))
    return str(ids)


def unused_versions() -> Iterator[None]:
    """Delete versions of templates that were replaced or deleted and that no email refers to any more."""
    while _execute(DELETE_VERSIONS, [VERSION_AGE, AT_ONCE]) == AT_ONCE:
        yield


def _pages(workspace_id: str, age: timedelta) -> Iterator[str]:
    """Yield ids of expired emails, as PostgreSQL writes arrays: making objects of them was a third of the whole."""
    values = {"workspace": to_uuid(workspace_id, prefix="ws_"), "age": age, "limit": AT_ONCE}
    last: dict[str, Any] = {"created_at": counters.ALL_TIME, "id": UUID(int=0)}
    while True:
        ((ids, *place),) = _query(EXPIRED, values | last)
        if ids is None:
            return
        yield ids
        last = dict(zip(last, place, strict=True))


def _gone(
    workspace_id: str, emails: Sequence[tuple[Any, ...]], recipients: Sequence[tuple[Any, ...]]
) -> Iterator[Change]:
    for hour, key, number in emails:
        yield counters.CounterKey(workspace_id, hour, counters.DELETED + key), number
    for state, number in recipients:
        for count in (Count.ACCEPTED, _count_of(State(state))):
            yield counters.CounterKey(workspace_id, counters.ALL_TIME, counters.DELETED + count.value), number


def _count_of(state: State) -> Count:
    """Return how queue/stats counted a finished recipient: by what became of it in the end, a late bounce included."""
    return Count.CANCELLED if state is State.CANCELLED else finished(state)


def _query(sql: str, parameters: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def _execute(sql: str, parameters: Any) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return int(cursor.rowcount)
