"""Opens and clicks: any number of them in one transaction.

Lock order as everywhere: Pending → Recipient → Email by id → sorted inserts. The queue's rows are locked though
they do not change: emails.sending.outcomes holds them while it updates recipients in no order of its own.
See docs/decisions/0027.
"""

import hashlib
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from emails.events.timeline import NewEvent, add_events
from emails.models import Event
from emails.states import State, sources
from emails.status_rollup import derive_emails
from lib.ids import from_uuid, to_uuid
from lib.sql import Statement, run_together

# Hits of one recipient on one link that are events and webhooks; further ones are counted.
EVENTS_A_LINK = 20
# Nobody reads that fast: a gateway looked at the mail before, or just after, it took it.
TOO_SOON_SECONDS = 2.0

# Leased: the mail is being handed over at this moment.
LOCK_PENDING = """
SELECT recipient_id, stage = 2 FROM emails_pending WHERE recipient_id = ANY(%s) ORDER BY recipient_id FOR SHARE
"""
LOCK_RECIPIENTS = """
SELECT id, email_id, address, extract(epoch FROM now() - sent_at)::float
  FROM emails_recipient WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE
"""
COUNT = """
INSERT INTO emails_hitcount AS known (recipient_id, link, hits)
SELECT * FROM unnest(%s::uuid[], %s::uuid[], %s::int[]) AS h (recipient_id, link, hits) ORDER BY recipient_id, link
    ON CONFLICT (recipient_id, link) DO UPDATE SET hits = known.hits + EXCLUDED.hits
RETURNING recipient_id, link, hits
"""
# Who clicks has opened, and has it; a recipient whose mail failed, bounced or was cancelled stays as he is.
MOVE = """
UPDATE emails_recipient r
   SET state = CASE WHEN h.clicked THEN 'clicked' ELSE 'opened' END,
       delivered_at = coalesce(r.delivered_at, now()), opened_at = coalesce(r.opened_at, now()),
       clicked_at = CASE WHEN h.clicked THEN coalesce(r.clicked_at, now()) ELSE r.clicked_at END
  FROM unnest(%s::uuid[], %s::bool[]) AS h (id, clicked)
 WHERE r.id = h.id AND r.state = ANY(CASE WHEN h.clicked THEN %s::text[] ELSE %s::text[] END)
RETURNING r.email_id
"""


@dataclass(frozen=True)
class Hit:
    """A pixel that was loaded, or a link that was followed to url; heard_at by the process's monotonic clock."""

    recipient_id: str
    url: str | None = None
    is_machine: bool = False
    heard_at: float = field(default_factory=time.monotonic)

    @property
    def link(self) -> tuple[UUID, UUID]:
        """What is counted: the recipient and the target."""
        return to_uuid(self.recipient_id), UUID(bytes=hashlib.sha256((self.url or "").encode()).digest()[:16])


@dataclass(frozen=True)
class _Recipient:
    email_id: str
    address: str
    seconds_since_sent: float | None
    is_leased: bool


@transaction.atomic
def record_hits(hits: Sequence[Hit]) -> None:
    """Write hits down, in the order in which they came; those of emails that are deleted leave no trace."""
    recipients = _locked({hit.recipient_id for hit in hits})
    known = [hit for hit in hits if hit.recipient_id in recipients]
    if not known:
        return
    email_ids = _move(known)
    add_events([_event(hit, recipients[hit.recipient_id]) for hit in _counted(known)])
    derive_emails(email_ids)


def _locked(recipient_ids: set[str]) -> dict[str, _Recipient]:
    ids = [to_uuid(recipient_id) for recipient_id in recipient_ids]
    pending, recipients = run_together([Statement(LOCK_PENDING, [ids]), Statement(LOCK_RECIPIENTS, [ids])])
    leased = {id_ for id_, is_leased in pending if is_leased}
    return {
        from_uuid(id_): _Recipient(from_uuid(email_id), address, seconds, id_ in leased)
        for id_, email_id, address, seconds in recipients
    }


def _move(hits: Sequence[Hit]) -> list[str]:
    """Move the recipients along the table; return the emails to derive anew."""
    clicked: dict[UUID, bool] = {}
    for hit in hits:
        recipient_id = to_uuid(hit.recipient_id)
        clicked[recipient_id] = clicked.get(recipient_id, False) or hit.url is not None
    values: list[Any] = [list(clicked), list(clicked.values()), sources(State.CLICKED), sources(State.OPENED)]
    with connection.cursor() as cursor:
        cursor.execute(MOVE, values)
        return sorted({from_uuid(email_id) for (email_id,) in cursor.fetchall()})


def _counted(hits: Sequence[Hit]) -> Iterator[Hit]:
    """Count the hits; yield those that are among the first of their recipient and link."""
    links = [hit.link for hit in hits]
    new = Counter(links)
    columns: list[Any] = [[recipient_id for recipient_id, _ in new], [link for _, link in new], list(new.values())]
    with connection.cursor() as cursor:
        cursor.execute(COUNT, columns)
        before = {
            (recipient_id, link): total - new[recipient_id, link] for recipient_id, link, total in cursor.fetchall()
        }
    for hit, link in zip(hits, links, strict=True):
        if before[link] < EVENTS_A_LINK:
            yield hit
        before[link] += 1


def _event(hit: Hit, recipient: _Recipient) -> NewEvent:
    kind = Event.Kind.CLICKED if hit.url else Event.Kind.OPENED
    details = {"url": hit.url} if hit.url else {}
    return NewEvent(
        kind,
        recipient.email_id,
        hit.recipient_id,
        recipient.address,
        {**details, "machine": hit.is_machine or _is_too_soon(hit, recipient)},
    )


def _is_too_soon(hit: Hit, recipient: _Recipient) -> bool:
    if recipient.seconds_since_sent is None:
        return recipient.is_leased
    waited = time.monotonic() - hit.heard_at
    return recipient.seconds_since_sent - waited < TOO_SOON_SECONDS
