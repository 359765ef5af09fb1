"""Delete emails that were finished longer ago than the plan keeps them (CONTRACT section 2, docs/decisions/0044).

The counters stay: what is taken is counted beside them, behind tally.GONE, so that analytics keep their figures
and lists count what there is.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from analytics import tally
from emails.derive import reached
from emails.states import State
from emails.stats import Change, Count, change, finished
from keys.ids import from_uuid, to_uuid

AT_ONCE = 1000
# Longer than a template may still be in the hands of a request that read it before it was changed.
VERSION_AGE = timedelta(days=1)

# The oldest come first, and each page begins behind the last: what is old and not finished (held mail of a
# suspended workspace, schedules) is passed once a run. At most AT_ONCE recipients, but at least one email.
EXPIRED = """
SELECT created_at, id FROM (
    SELECT created_at, id, sum(cardinality("to") + cardinality(cc) + cardinality(bcc)) OVER page AS recipients,
           row_number() OVER page AS place
      FROM (SELECT created_at, id, "to", cc, bcc FROM emails_email
             WHERE workspace_id = %(workspace)s AND created_at < now() - %(age)s AND finished_at < now() - %(age)s
               AND (created_at, id) > (%(created_at)s, %(id)s)
             ORDER BY created_at, id LIMIT %(limit)s) oldest
    WINDOW page AS (ORDER BY created_at, id)
) counted WHERE recipients <= %(limit)s OR place = 1 ORDER BY created_at, id
"""
# Recipients before emails, as everywhere (emails.outcomes); what somebody else holds is left to the next run.
HOLD = """
WITH held AS MATERIALIZED (
    SELECT id, email_id FROM emails_recipient WHERE email_id = ANY(%(ids)s) ORDER BY id FOR UPDATE SKIP LOCKED
), whole AS MATERIALIZED (
    SELECT email_id FROM held LEFT JOIN emails_pending p ON p.recipient_id = held.id GROUP BY email_id
    HAVING count(p.recipient_id) = 0
       AND count(*) = (SELECT count(*) FROM emails_recipient r WHERE r.email_id = held.email_id)
)
SELECT e.id FROM emails_email e WHERE e.id IN (SELECT email_id FROM whole) ORDER BY e.id FOR UPDATE SKIP LOCKED
"""
DELETE_EVENTS = "DELETE FROM emails_event WHERE email_id = ANY(%s)"
DELETE_RECIPIENTS = "DELETE FROM emails_recipient WHERE email_id = ANY(%s) RETURNING state"
DELETE_EMAILS = """
DELETE FROM emails_email WHERE id = ANY(%s)
RETURNING workspace_id, created_at, status, content_id, delivered_at, bounced_at, opened_at, clicked_at
"""
# A copy that is being made of an email (resend) refers to its content: it is waited for, then seen.
HOLD_CONTENTS = "SELECT id FROM emails_content WHERE id = ANY(%s) ORDER BY id FOR UPDATE"
UNUSED_CONTENTS = """
SELECT id FROM emails_content c WHERE id = ANY(%s) AND NOT EXISTS (SELECT FROM emails_email WHERE content_id = c.id)
"""
DELETE_ATTACHMENTS = "DELETE FROM emails_attachment WHERE content_id = ANY(%s)"
DELETE_CONTENTS = "DELETE FROM emails_content WHERE id = ANY(%s)"
DELETE_VERSIONS = """
DELETE FROM templates_app_templateversion WHERE id IN (
    SELECT id FROM templates_app_templateversion v WHERE retired_at < now() - %s
       AND NOT EXISTS (SELECT FROM emails_email WHERE template_version_id = v.id) LIMIT %s)
"""


def expired_emails(workspace_id: str, age: timedelta) -> Iterator[None]:
    """Delete a workspace's emails that were finished before `age` ago; yield after each transaction."""
    last: dict[str, Any] = {"created_at": tally.EVER, "id": UUID(int=0)}
    values = {"workspace": to_uuid(workspace_id, prefix="ws_"), "age": age, "limit": AT_ONCE}
    while page := _query(EXPIRED, values | last):
        delete_finished([id_ for _, id_ in page])
        last = dict(zip(("created_at", "id"), page[-1], strict=True))
        yield


def unused_versions() -> Iterator[None]:
    """Delete versions of templates that were replaced or deleted and that no email refers to any more."""
    while _execute(DELETE_VERSIONS, [VERSION_AGE, AT_ONCE]) == AT_ONCE:
        yield


@transaction.atomic
def delete_finished(candidates: Sequence[UUID]) -> list[UUID]:
    """Delete those of a workspace's emails that nothing is left to do for; return them."""
    ids = [id_ for (id_,) in _query(HOLD, {"ids": list(candidates)})]
    _execute(DELETE_EVENTS, [ids])
    recipients = _query(DELETE_RECIPIENTS, [ids])
    emails = _query(DELETE_EMAILS, [ids])
    _delete_contents({content_id for _, _, _, content_id, *_ in emails} - {None})
    tally.add(_gone(emails, recipients))
    return ids


def _delete_contents(candidates: Iterable[UUID]) -> None:
    locked = [id_ for (id_,) in _query(HOLD_CONTENTS, [list(candidates)])]
    unused = [id_ for (id_,) in _query(UNUSED_CONTENTS, [locked])]
    _execute(DELETE_ATTACHMENTS, [unused])
    _execute(DELETE_CONTENTS, [unused])


def _gone(emails: Sequence[tuple[Any, ...]], recipients: Sequence[tuple[str]]) -> Iterator[Change]:
    for workspace, created_at, status, _, *times in emails:
        for key in (f"status.{status}", *(f"reached.{name}" for name in reached(times))):
            yield tally.Slot(from_uuid(workspace, prefix="ws_"), created_at, tally.GONE + key), 1
    for (state,) in recipients:
        workspace_id = from_uuid(emails[0][0], prefix="ws_")
        for count in (Count.ACCEPTED, _count_of(State(state))):
            slot, by = change(count, workspace_id)
            yield tally.Slot(slot.workspace_id, slot.created_at, tally.GONE + slot.key), by


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
