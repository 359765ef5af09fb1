"""Removal of contents before their emails: those of sensitive emails, and after contentRetention of their stream.

HTML, text, attachments and template data go, and copies that other apps keep; the row, the recipients and the events
stay until the plan's retention. The index of due emails has no others. See docs/decisions/0351.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction

from core.counters.counters import ALL_TIME
from core.lib.ids import to_uuid
from core.lib.registry import Registry
from core.lib.sql import Fragment, run, run_together
from emails.upkeep.retention import BATCH_SIZE, DELETE_ATTACHMENTS, DELETE_CONTENTS, FORCE_INDEX, LOCK_CONTENTS
from streams.models import Stream

# Functions that remove what an app keeps of the contents of emails, given by id. Registered by apps.
COPIES: Registry[Callable[[Sequence[UUID]], None]] = Registry()
# Longer than a request may still use a stream that it read before the change.
CHANGE_AGE = timedelta(minutes=1)

# The different values in the index, one look-up for each.
READ_HOURS = """
WITH RECURSIVE found AS (
    (SELECT content_hours AS hours FROM emails_email WHERE content_hours IS NOT NULL ORDER BY 1 LIMIT 1)
    UNION ALL
    SELECT (SELECT content_hours FROM emails_email WHERE content_hours > found.hours ORDER BY 1 LIMIT 1)
      FROM found WHERE found.hours IS NOT NULL
)
SELECT hours FROM found WHERE hours IS NOT NULL
"""
# Locked rows, such as those that are copied to be sent again, are left to the next batch or run.
LOCK_DUE = """
SELECT array_agg(id), coalesce(array_agg(DISTINCT content_id) FILTER (WHERE content_id IS NOT NULL), '{}')
  FROM (SELECT id, content_id FROM emails_email
         WHERE content_hours = %(hours)s AND finished_at <= now() - make_interval(hours => %(hours)s)
         ORDER BY finished_at LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED) due
"""
# The template version stays: it is content of the template, and its values were in template_data.
CLEAR = """
UPDATE emails_email
   SET content_id = NULL, template_data = NULL, content_hours = NULL, content_removed_at = now()
 WHERE id = ANY(%(ids)s::uuid[])
"""
# Locked in the order of ids, as by all that change emails.
APPLY = """
WITH page AS MATERIALIZED (
    SELECT created_at, id FROM emails_email
     WHERE workspace_id = %(workspace)s AND stream = %(stream)s AND (created_at, id) > (%(created_at)s, %(id)s)
     ORDER BY created_at, id LIMIT %(limit)s
), locked AS MATERIALIZED (
    SELECT id FROM emails_email WHERE id IN (SELECT id FROM page) AND NOT sensitive AND content_removed_at IS NULL
       AND content_hours IS DISTINCT FROM %(hours)s::smallint ORDER BY id FOR NO KEY UPDATE
), changed AS (
    UPDATE emails_email SET content_hours = %(hours)s WHERE id IN (SELECT id FROM locked)
)
SELECT created_at, id FROM page ORDER BY created_at DESC, id DESC LIMIT 1
"""


def remove_due_contents() -> Iterator[None]:
    """Remove the contents that are due in all workspaces; yield after each transaction."""
    for (hours,) in run(READ_HOURS):
        while _remove_batch(hours):
            yield


@transaction.atomic
def _remove_batch(hours: int) -> bool:
    """Remove the contents of a batch of emails; return whether there may be more."""
    values = {"hours": hours, "limit": BATCH_SIZE}
    *_, ((ids, contents),) = run_together([Fragment(FORCE_INDEX), Fragment(LOCK_CONTENTS), Fragment(LOCK_DUE, values)])
    if ids is None:
        return False
    removed = {"ids": ids, "contents": contents}
    run_together([Fragment(sql, removed) for sql in (CLEAR, DELETE_ATTACHMENTS, DELETE_CONTENTS)])
    for remove_copies in COPIES.values():
        remove_copies(ids)
    return len(ids) == BATCH_SIZE


def apply_changed_retention() -> Iterator[None]:
    """Give accepted emails the contentRetention of streams that was changed since; yield after each transaction.

    A run that ends early begins again: the stream keeps the time of its change until all emails have it.
    """
    cutoff = run("SELECT now() - %s", [CHANGE_AGE])[0][0]
    for stream in Stream.objects.filter(content_changed_at__lt=cutoff).order_by("content_changed_at"):
        yield from _apply(stream)
        Stream.objects.filter(id=stream.id, content_changed_at=stream.content_changed_at).update(
            content_changed_at=None
        )


def _apply(stream: Stream) -> Iterator[None]:
    values: dict[str, Any] = {
        "workspace": to_uuid(stream.workspace_id, prefix="ws_"),
        "stream": stream.slug,
        "hours": stream.content_retention,
        "limit": BATCH_SIZE,
    }
    place: tuple[Any, ...] = ALL_TIME, UUID(int=0)
    while found := run(APPLY, {**values, "created_at": place[0], "id": place[1]}):
        (place,) = found
        yield
