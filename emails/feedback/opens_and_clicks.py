"""Opens and clicks: any number of hits recorded in one transaction.

Lock order as everywhere: QueueEntry → Recipient → Email by id → sorted inserts. The queue entries are locked although
they do not change, because emails.sending.outcomes locks them and then moves recipients in no particular order.
See docs/decisions/0027, and 0376 for those of streams that store less.
"""

import hashlib
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from core.lib.ids import from_uuid, to_uuid
from core.lib.sql import Fragment, run_together
from core.lib.worker.stages import Stage
from emails.recipient_moves import RecipientMove, move_recipients
from emails.states import EmailStatus
from emails.status_rollup import roll_up_and_count
from events.kinds import EventKind
from events.recording import NewEvent, record_events
from streams.models import Stream

# Hits of one recipient on one link that become events and webhook deliveries; further hits are only counted.
EVENTS_PER_LINK = 20
# A hit within this time of the delivery comes from a mail gateway that scans the message, not from a person.
MIN_HUMAN_SECONDS = 2.0

# A message with a leased entry is being sent now.
LOCK_PENDING = f"""
SELECT recipient_id, stage = {Stage.LEASED} FROM emails_pending
 WHERE recipient_id = ANY(%(ids)s) ORDER BY recipient_id FOR SHARE
"""  # noqa: S608 - a constant
# The stream `main` has a row only after it was changed.
LOCK_RECIPIENTS = f"""
SELECT r.id, r.email_id, r.address, extract(epoch FROM now() - r.sent_at)::float,
       coalesce(s.tracking_detail, '{Stream.TrackingDetail.FULL}')
  FROM emails_recipient r JOIN emails_email e ON e.id = r.email_id
       LEFT JOIN streams_stream s ON s.workspace_id = e.workspace_id AND s.slug = e.stream
 WHERE r.id = ANY(%(ids)s) ORDER BY r.id FOR NO KEY UPDATE OF r
"""  # noqa: S608 - a constant
COUNT_HITS = """
INSERT INTO emails_hitcount AS known (recipient_id, link, hits)
SELECT * FROM unnest(%s::uuid[], %s::uuid[], %s::int[]) AS h (recipient_id, link, hits) ORDER BY recipient_id, link
    ON CONFLICT (recipient_id, link) DO UPDATE SET hits = known.hits + EXCLUDED.hits
RETURNING recipient_id, link, hits
"""


@dataclass(frozen=True)
class Hit:
    """A loaded tracking pixel, or a followed link if url is set. received_at: the process's monotonic clock."""

    recipient_id: str
    url: str | None = None
    is_bot: bool = False
    received_at: float = field(default_factory=time.monotonic)

    @property
    def counter_key(self) -> tuple[UUID, UUID]:
        """The recipient and a hash of the target: one HitCount."""
        return to_uuid(self.recipient_id), UUID(bytes=hashlib.sha256((self.url or "").encode()).digest()[:16])


@dataclass(frozen=True)
class _HitRecipient:
    email_id: str
    address: str
    seconds_since_sent: float | None
    detail: str
    is_leased: bool

    @property
    def is_only_counted(self) -> bool:
        return self.detail == Stream.TrackingDetail.COUNTS


@transaction.atomic
def record_hits(hits: Sequence[Hit]) -> set[str]:
    """Record hits in the given order; ignore those of deleted emails.

    Returns the recipients of which nothing but their status may be kept: their stream only counts opens and clicks.
    """
    recipients = _lock_recipients({hit.recipient_id for hit in hits})
    known = [hit for hit in hits if hit.recipient_id in recipients]
    if not known:
        return set()
    only_counted = {id_ for id_, recipient in recipients.items() if recipient.is_only_counted}
    email_ids = _move_recipients(known, timeless=only_counted)
    counted = _count_hits([hit for hit in known if hit.recipient_id not in only_counted])
    record_events([_event(hit, recipients[hit.recipient_id], is_first=is_first) for hit, is_first in counted])
    roll_up_and_count(email_ids)
    return only_counted


def _lock_recipients(recipient_ids: set[str]) -> dict[str, _HitRecipient]:
    ids = [to_uuid(recipient_id) for recipient_id in recipient_ids]
    pending, recipients = run_together([Fragment(sql, {"ids": ids}) for sql in (LOCK_PENDING, LOCK_RECIPIENTS)])
    leased = {id_ for id_, is_leased in pending if is_leased}
    return {
        from_uuid(id_): _HitRecipient(from_uuid(email_id), address, seconds, detail, id_ in leased)
        for id_, email_id, address, seconds, detail in recipients
    }


def _move_recipients(hits: Sequence[Hit], *, timeless: Collection[str]) -> list[str]:
    """Move the recipients to opened or clicked where allowed; return the ids of their emails.

    timeless: the recipients whose times are not stored.
    """
    clicked = {hit.recipient_id for hit in hits if hit.url is not None}
    moved = move_recipients(
        [
            RecipientMove(
                id_,
                path=(EmailStatus.CLICKED if id_ in clicked else EmailStatus.OPENED,),
                is_timeless=id_ in timeless,
            )
            for id_ in {hit.recipient_id for hit in hits}
        ]
    )
    return sorted({recipient.email_id for recipient in moved.values()})


def _count_hits(hits: Sequence[Hit]) -> Iterator[tuple[Hit, bool]]:
    """Count the hits; yield the first EVENTS_PER_LINK of a recipient and link, and whether each is the very first."""
    if not hits:
        return
    keys = [hit.counter_key for hit in hits]
    new = Counter(keys)
    columns: list[Any] = [[recipient_id for recipient_id, _ in new], [link for _, link in new], list(new.values())]
    with connection.cursor() as cursor:
        cursor.execute(COUNT_HITS, columns)
        before = {
            (recipient_id, link): total - new[recipient_id, link] for recipient_id, link, total in cursor.fetchall()
        }
    for hit, key in zip(hits, keys, strict=True):
        if before[key] < EVENTS_PER_LINK:
            yield hit, before[key] == 0
        before[key] += 1


def _event(hit: Hit, recipient: _HitRecipient, *, is_first: bool) -> NewEvent:
    kind = EventKind.CLICKED if hit.url else EventKind.OPENED
    url = {"url": hit.url} if hit.url else {}
    is_full = recipient.detail == Stream.TrackingDetail.FULL
    machine = {"machine": hit.is_bot or _is_too_soon(hit, recipient)} if is_full else {}
    details = {**url, **machine, "first": is_first}
    return NewEvent(kind, recipient.email_id, hit.recipient_id, recipient.address, details)


def _is_too_soon(hit: Hit, recipient: _HitRecipient) -> bool:
    if recipient.seconds_since_sent is None:
        return recipient.is_leased
    waited = time.monotonic() - hit.received_at
    return recipient.seconds_since_sent - waited < MIN_HUMAN_SECONDS
