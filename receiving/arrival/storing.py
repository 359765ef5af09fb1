"""Storing a received message: everything in one transaction, before the 250 (docs/decisions/0228).

A repeated delivery, which follows when a 250 was lost, makes no second row.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import format_datetime
from functools import cached_property
from typing import Any

from django.conf import settings
from django.db import transaction

from core.lib.ids import from_uuid, new_id, to_uuid
from core.lib.sql import Fragment, run_prepared, run_together
from core.lib.worker import wakeup
from core.lib.worker.failpoints import failpoint
from receiving import content
from receiving.arrival import replies
from receiving.arrival.routing import RoutedRecipient
from receiving.arrival.usage import LimitReached, NewUse, message_limit, take_usage
from receiving.models import InboundRoute

# The digest and the sender of a message, the workspace and the address of a recipient.
EmailKey = tuple[str, str, str, str]
REPEATED_WITHIN = timedelta(hours=24)
# Workers that read other messages find new ones without a notification, which costs a task (docs/decisions/0361).
NOTIFY_EVERY_SECONDS = 0.1
# Deliveries of the same bytes wait for each other. In the order of the keys, so that two transactions cannot wait for
# each other.
LOCK = """
SELECT pg_advisory_xact_lock(hashtext('received'), key), statement_timestamp()
  FROM (SELECT DISTINCT hashtext(digest) AS key FROM unnest(%(digests)s::text[]) AS digest ORDER BY key OFFSET 0) keys
"""
FIND_REPEATED = """
SELECT given.digest, m.envelope_from, e.workspace_id, lower(e.recipient), e.id
  FROM unnest(%(digests)s::text[]) AS given (digest)
  JOIN receiving_message m ON m.sha256 = decode(given.digest, 'hex') AND m.received_at > now() - %(within)s
  JOIN receiving_receivedemail e ON e.message_id = m.id
 WHERE NOT m.is_test
"""
# The reading follows later, and fills the other columns.
INSERT = """
WITH message AS (
    INSERT INTO receiving_message (
        id, content_id, sha256, size, envelope_from, remote_ip, helo, tls, trace, is_test, workspace_id, received_at,
        subject, sender, addresses, message_id, in_reply_to, "references", text, text_generated, html, truncated,
        headers, attachments, automatic, parse_errors)
    SELECT id, content_id, decode(digest, 'hex'), size, envelope_from, remote_ip, helo, tls, trace, is_test,
           workspace_id, %(now)s, '', '', '{}', '', '', '{}', '', false, '', '{}', '[]', '[]', 'no', '{}'
      FROM json_to_recordset(%(messages)s) AS m (
           id uuid, content_id uuid, digest text, size int, envelope_from text, remote_ip inet, helo text, tls text,
           trace text, is_test boolean, workspace_id uuid)
)
INSERT INTO receiving_receivedemail (
    id, workspace_id, message_id, route_id, recipient, tag, status, blocked_reason, sender, subject, size, is_test,
    reply_address, reply_matched_by, is_from_recipient, inlines_files, includes_raw, store_days, received_at,
    expires_at)
SELECT id, workspace_id, message_id, route_id, recipient, tag, 'stored', '', '', '', size, is_test, '', '', false,
       inlines_files, includes_raw, store_days, %(now)s,
       -- Without days it goes when its deliveries have ended, within a week.
       %(now)s + make_interval(days => coalesce(nullif(store_days, 0), 7))
  FROM json_to_recordset(%(emails)s) AS e (
       id uuid, workspace_id uuid, message_id uuid, route_id uuid, recipient text, tag text, size int, is_test boolean,
       inlines_files boolean, includes_raw boolean, store_days int)
"""


@dataclass(frozen=True)
class Arrival:
    """A message and its envelope.

    source: the message without the framing of SMTP.
    remote_ip: None for a simulated message.
    """

    source: bytes | bytearray
    envelope_from: str
    remote_ip: str | None = None
    helo: str = ""
    tls: str = ""
    is_test: bool = False


@dataclass(frozen=True)
class Delivery:
    """A message for its recipients. size: of the message in bytes."""

    arrival: Arrival
    recipients: Sequence[RoutedRecipient]

    @property
    def size(self) -> int:
        return len(self.arrival.source)

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(self.arrival.source).hexdigest()

    @property
    def kept(self) -> list[RoutedRecipient]:
        """The recipients without those of a route that discards."""
        return [recipient for recipient in self.recipients if not recipient.is_discarded]

    def key(self, recipient: RoutedRecipient) -> EmailKey:
        """Return what a repeated delivery has in common."""
        sender = stored_sender(self.arrival)
        return self.digest, sender, recipient.workspace.id, recipient.address.lower()


def store_message(arrival: Arrival, recipients: Sequence[RoutedRecipient]) -> str:
    """Store a message for its recipients, one row each; return the id of the first. Raises LimitReached."""
    return store_messages([Delivery(arrival, recipients)])[0]


@transaction.atomic
def store_messages(deliveries: Sequence[Delivery]) -> list[str]:
    """Store messages for their recipients, one row each; return the id of the first row of each message.

    Rows that an earlier delivery of the same message made are kept, and recipients of a route that discards get none.
    Raises LimitReached if one of them exceeds a limit: then none is stored.
    """
    now, ids = _find_repeated(deliveries)
    failpoint("receiving.before_store")
    new: list[Delivery] = []
    for delivery in deliveries:
        missing = {key: one for one in delivery.kept if (key := delivery.key(one)) not in ids}
        if missing:
            new.append(Delivery(delivery.arrival, [*missing.values()]))
            # Also for the same message further behind.
            ids |= {key: new_id("inb_") for key in missing}
    if new:
        _insert(new, ids, now)
    failpoint("receiving.after_store")
    return [next((ids[one.key(recipient)] for recipient in one.kept), new_id("inb_")) for one in deliveries]


def _find_repeated(deliveries: Sequence[Delivery]) -> tuple[datetime, dict[EmailKey, str]]:
    """Lock messages by their digests; return the time, and the ids of earlier deliveries."""
    digests = sorted({one.digest for one in deliveries})
    # A simulated message is no repetition.
    repeatable = sorted({one.digest for one in deliveries if not one.arrival.is_test})
    values = {"digests": repeatable, "within": REPEATED_WITHIN}
    locked, rows = run_together([Fragment(LOCK, {"digests": digests}), Fragment(FIND_REPEATED, values)])
    return locked[0][1], {
        (digest, sender, from_uuid(workspace, prefix="ws_"), recipient): from_uuid(id_, prefix="inb_")
        for digest, sender, workspace, recipient, id_ in rows
    }


def _insert(deliveries: Sequence[Delivery], ids: Mapping[EmailKey, str], now: datetime) -> None:
    take_usage(_new_uses(deliveries))
    contents = content.put([one.arrival.source for one in deliveries])
    messages, emails = [], []
    for delivery, content_id in zip(deliveries, contents, strict=True):
        message_id = new_id("msg_")
        messages.append(_message_row(delivery, message_id, content_id, now))
        emails += [_email_row(delivery, message_id, recipient, ids) for recipient in delivery.recipients]
    run_prepared(INSERT, {"now": now, "messages": json.dumps(messages), "emails": json.dumps(emails)})
    transaction.on_commit(lambda: wakeup.notify_soon("receiving", every_seconds=NOTIFY_EVERY_SECONDS))


def _new_uses(deliveries: Iterable[Delivery]) -> Iterator[NewUse]:
    """Yield the use by workspaces and hosts."""
    workspaces = {one.workspace.id: one.workspace for delivery in deliveries for one in delivery.recipients}
    counts: Counter[tuple[str, str | None]] = Counter()
    sizes: Counter[tuple[str, str | None]] = Counter()
    for delivery in deliveries:
        for recipient in delivery.recipients:
            if delivery.size > message_limit(recipient.workspace):
                raise LimitReached(replies.TOO_LARGE_FOR_RECIPIENT)
            user = recipient.workspace.id, delivery.arrival.remote_ip
            counts[user] += 1
            sizes[user] += delivery.size
    for (workspace_id, remote_ip), count in counts.items():
        yield NewUse(workspaces[workspace_id], remote_ip, count, sizes[workspace_id, remote_ip])


def _message_row(delivery: Delivery, message_id: str, content_id: str, now: datetime) -> dict[str, Any]:
    arrival = delivery.arrival
    helo, tls = _plain(arrival.helo)[:255], arrival.tls[:16]
    return {
        "id": str(to_uuid(message_id, prefix="msg_")),
        "content_id": str(to_uuid(content_id, prefix=content.PREFIX)),
        "digest": delivery.digest,
        "size": delivery.size,
        "envelope_from": stored_sender(arrival),
        "remote_ip": arrival.remote_ip,
        "helo": helo,
        "tls": tls,
        "trace": _trace(message_id, helo=helo, remote_ip=arrival.remote_ip, tls=tls, received_at=now),
        "is_test": arrival.is_test,
        "workspace_id": str(to_uuid(delivery.recipients[0].workspace.id, prefix="ws_")),
    }


def _email_row(
    delivery: Delivery, message_id: str, recipient: RoutedRecipient, ids: Mapping[EmailKey, str]
) -> dict[str, Any]:
    route = recipient.route
    days = route.store_days if route and route.store_days is not None else recipient.workspace.limits.retention.days
    return {
        "id": str(to_uuid(ids[delivery.key(recipient)], prefix="inb_")),
        "workspace_id": str(to_uuid(recipient.workspace.id, prefix="ws_")),
        "message_id": str(to_uuid(message_id, prefix="msg_")),
        "route_id": route and str(to_uuid(route.id, prefix="rt_")),
        "recipient": _plain(recipient.address),
        "tag": _plain(recipient.tag),
        "size": delivery.size,
        "is_test": delivery.arrival.is_test,
        "inlines_files": bool(route and route.attachments == InboundRoute.AttachmentForm.INLINE),
        "includes_raw": bool(route and route.include_raw),
        "store_days": days,
    }


def stored_sender(arrival: Arrival) -> str:
    return _plain(arrival.envelope_from).strip("<>")[:320]


def _plain(text: str) -> str:
    """Return a text of the client without control characters, which PostgreSQL and headers refuse."""
    return "".join(character if character.isprintable() else "?" for character in text)


def _trace(message_id: str, *, helo: str, remote_ip: str | None, tls: str, received_at: datetime) -> str:
    """Return our Received field (RFC 5321, section 4.4), without a recipient: recipients of the envelope share it."""
    address = f" ([{remote_ip}])" if remote_ip else ""
    protocol = "ESMTPS" if tls else "ESMTP"
    return (
        f"Received: from {helo or 'unknown'}{address}\r\n"
        f"\tby {settings.EHLO_NAME} (Postrider) with {protocol} id {message_id};\r\n"
        f"\t{format_datetime(received_at)}\r\n"
    )
