"""Storing a received message: everything in one transaction, before the 250 (docs/decisions/0228).

A repeated delivery, which follows when a 250 was lost, makes no second row.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import format_datetime

from django.conf import settings
from django.db import transaction

from core.lib.ids import from_uuid, new_id, to_uuid
from core.lib.sql import Fragment, run_together
from core.lib.worker import wakeup
from core.lib.worker.failpoints import failpoint
from receiving import content
from receiving.arrival.routing import RoutedRecipient
from receiving.arrival.usage import take_usage
from receiving.models import InboundRoute, Message, ReceivedEmail

REPEATED_WITHIN = timedelta(hours=24)
# Deliveries of the same bytes wait for each other.
LOCK = "SELECT pg_advisory_xact_lock(hashtext('received'), hashtext(%(digest)s)), statement_timestamp()"
FIND_REPEATED = """
SELECT e.workspace_id, lower(e.recipient), e.id FROM receiving_message m
  JOIN receiving_receivedemail e ON e.message_id = m.id
 WHERE m.sha256 = %(sha256)s AND m.received_at > now() - %(within)s AND m.envelope_from = %(sender)s
   AND NOT m.is_test AND NOT %(is_test)s
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


@transaction.atomic
def store_message(arrival: Arrival, recipients: Sequence[RoutedRecipient]) -> str:
    """Store a message for its recipients, one row each; return the id of the first. Raises LimitReached.

    Rows that an earlier delivery of the same message made are kept, and recipients of a route that discards get none.
    """
    digest = hashlib.sha256(arrival.source).digest()
    now, known = _find_repeated(arrival, digest)
    kept = [recipient for recipient in recipients if not recipient.is_discarded]
    new = [recipient for recipient in kept if _key(recipient) not in known]
    failpoint("receiving.before_store")
    ids = known | (_insert(arrival, digest, new, now) if new else {})
    failpoint("receiving.after_store")
    return next((ids[_key(recipient)] for recipient in kept), new_id("inb_"))


def _key(recipient: RoutedRecipient) -> tuple[str, str]:
    return recipient.workspace.id, recipient.address.lower()


def _find_repeated(arrival: Arrival, digest: bytes) -> tuple[datetime, dict[tuple[str, str], str]]:
    """Lock a message by its digest; return the time, and the ids of earlier deliveries by workspace and recipient."""
    values = {
        "sha256": digest,
        "within": REPEATED_WITHIN,
        "sender": _stored_sender(arrival),
        "is_test": arrival.is_test,
    }
    ((_, now),), rows = run_together([Fragment(LOCK, {"digest": digest.hex()}), Fragment(FIND_REPEATED, values)])
    return now, {
        (from_uuid(workspace, prefix="ws_"), recipient): from_uuid(id_, prefix="inb_")
        for workspace, recipient, id_ in rows
    }


def _insert(
    arrival: Arrival, digest: bytes, recipients: Sequence[RoutedRecipient], now: datetime
) -> dict[tuple[str, str], str]:
    # In the order of ids, so that two transactions cannot wait for each other.
    for recipient in sorted(recipients, key=lambda recipient: to_uuid(recipient.workspace.id, prefix="ws_")):
        take_usage(recipient.workspace, size=len(arrival.source), remote_ip=arrival.remote_ip)
    message = Message(
        content_id=content.put(arrival.source),
        sha256=digest,
        size=len(arrival.source),
        envelope_from=_stored_sender(arrival),
        remote_ip=arrival.remote_ip,
        helo=_plain(arrival.helo)[:255],
        tls=arrival.tls[:16],
        is_test=arrival.is_test,
        workspace_id=recipients[0].workspace.id,
        received_at=now,
    )
    message.trace = _trace(message)
    message.save(force_insert=True)
    rows = [_row(message, recipient) for recipient in recipients]
    ReceivedEmail.objects.bulk_create(rows)
    transaction.on_commit(lambda: wakeup.notify("receiving"))
    return {_key(recipient): row.id for recipient, row in zip(recipients, rows, strict=True)}


def _row(message: Message, recipient: RoutedRecipient) -> ReceivedEmail:
    retention, route = recipient.workspace.limits.retention, recipient.route
    days = route.store_days if route and route.store_days is not None else retention.days
    return ReceivedEmail(
        workspace=recipient.workspace,
        message=message,
        route_id=route.id if route else None,  # type: ignore[misc]  # IdField is a str's
        recipient=_plain(recipient.address),
        tag=_plain(recipient.tag),
        size=message.size,
        is_test=message.is_test,
        inlines_files=bool(route and route.attachments == InboundRoute.AttachmentForm.INLINE),
        includes_raw=bool(route and route.include_raw),
        store_days=days,
        received_at=message.received_at,
        # Without days it goes when its deliveries have ended, within a week.
        expires_at=message.received_at + timedelta(days=days or 7),
    )


def _stored_sender(arrival: Arrival) -> str:
    return _plain(arrival.envelope_from).strip("<>")[:320]


def _plain(text: str) -> str:
    """Return a text of the client without control characters, which PostgreSQL and headers refuse."""
    return "".join(character if character.isprintable() else "?" for character in text)


def _trace(message: Message) -> str:
    """Return our Received field (RFC 5321, section 4.4), without a recipient: recipients of the envelope share it."""
    helo = message.helo or "unknown"
    address = f" ([{message.remote_ip}])" if message.remote_ip else ""
    protocol = "ESMTPS" if message.tls else "ESMTP"
    date = format_datetime(message.received_at)
    return (
        f"Received: from {helo}{address}\r\n\tby {settings.EHLO_NAME} (Postrider) with {protocol} id {message.id};\r\n"
        f"\t{date}\r\n"
    )
