"""Processing of messages that were read: the reading is saved, and each received email is published or blocked.

One transaction for each message, guarded by the fence of its claim.
"""

import logging
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from core.lib.sql import run
from core.lib.worker.failpoints import failpoint
from receiving.answers.matching import match_reply
from receiving.arrival.routing import is_blocked
from receiving.models import InboundRoute, Message, ReceivedEmail
from receiving.publishing import move_email, publish_email
from receiving.reading.message import Reading
from receiving.reading.spam import SpamResult
from receiving.reading.verdicts import Authentication
from receiving.states import NOT_READ, BlockedReason, ReceivedStatus
from receiving.unread.queue import QUEUE, MessageClaim

log = logging.getLogger("postrider.receiving")

OLDEST = """
SELECT extract(epoch FROM now() - CASE WHEN reread_at IS NULL THEN received_at ELSE greatest(reread_at, due_at) END)
  FROM receiving_message
 WHERE read_at IS NULL ORDER BY due_at LIMIT 1
"""


@dataclass(frozen=True)
class ReadResult:
    """A message that was read.

    reading: None if not even its header could be read.
    error: the reason why it is unreadable.
    """

    claim: MessageClaim
    reading: Reading | None
    authentication: Authentication | None = None
    spam: SpamResult | None = None
    error: str = ""


def oldest_stored_seconds() -> float:
    """Return the age of the oldest message that is not read, 0 without one. A message to reread ages once it is due."""
    rows = run(OLDEST)
    return max(float(rows[0][0]), 0.0) if rows else 0.0


def record_reading(result: ReadResult) -> bool:
    """Save a reading and publish its emails; of one that cannot be saved, that it is unreadable.

    Returns False if the lease was lost.
    """
    try:
        return _record(result)
    except ValueError:
        # `django.db.DataError` is not a ValueError. It would be a bug, and must not stop the queue.
        log.exception("a reading could not be saved")
        return _record(ReadResult(result.claim, None, error=NOT_READ))


@transaction.atomic
def _record(result: ReadResult) -> bool:
    if not QUEUE.lock_claimed([result.claim]):
        return False
    message = Message.objects.filter(id=result.claim.key)
    if result.error and message.filter(reread_at__isnull=False).update(read_at=Now()):
        # Reread, and no more is known of it than before (docs/decisions/0277).
        return True
    changes = _columns(result) if result.reading else {"parse_errors": [result.error or NOT_READ]}
    changes |= {"authentication": result.authentication, "spam": result.spam}
    message.update(read_at=Now(), **changes)
    rows = ReceivedEmail.objects.select_for_update(of=("self",)).select_related("workspace", "message")
    # Do not read back the columns that were just written; they are set below.
    rows = rows.defer(*(f"message__{name}" for name in changes))
    for email in rows.filter(message=result.claim.key).order_by("id"):
        for name, value in changes.items():
            setattr(email.message, name, value)
        _finish_email(email, result)
    failpoint("receiving.before_record_commit")
    return True


def _columns(result: ReadResult) -> dict[str, Any]:
    reading = result.reading
    assert reading
    errors = [*reading.errors, *([result.error] if result.error else [])]
    return {
        "subject": reading.subject,
        "sender": reading.sender[:320],
        "addresses": {name: [one.to_json() for one in found] for name, found in reading.mailboxes.items()},
        "date": reading.date,
        "message_id": reading.message_id,
        "in_reply_to": reading.in_reply_to,
        "references": reading.references,
        "text": reading.text,
        "text_generated": reading.text_generated,
        "reply_text": reading.reply_text,
        "html": reading.html,
        "truncated": reading.truncated,
        "headers": reading.headers,
        "attachments": reading.attachments,
        "automatic": reading.automatic,
        "parse_errors": errors,
    }


def _finish_email(email: ReceivedEmail, result: ReadResult) -> None:
    """Match an email, and publish or block it."""
    message = email.message
    match = match_reply(email, message)
    changes = {"sender": message.sender, "subject": message.subject, **(match.columns(message) if match else {})}
    route = InboundRoute.objects.filter(id=email.route_id).first() if email.route_id else None
    is_other = result.reading is not None and match is None
    # An email that was published before its message was reread stays published (docs/decisions/0277).
    if not email.event_id and (reason := _blocked_reason(email, route, is_other=is_other)):
        move_email(email, status=ReceivedStatus.BLOCKED, blocked_reason=reason, **changes)
        return
    is_released = email.status == ReceivedStatus.PROCESSED
    if route and route.forward_to and not result.error and not is_released:
        # It is not deleted before it is forwarded (docs/decisions/0281).
        changes |= {"forward_due_at": Now(), "processed_at": None}
    publish_email(email, status=ReceivedStatus.UNREADABLE if result.error else ReceivedStatus.PROCESSED, **changes)


def _blocked_reason(email: ReceivedEmail, route: InboundRoute | None, *, is_other: bool) -> BlockedReason | None:
    """Return why an email is kept back: by a block of its sender, or by a rule of its route.

    A rule about something that was not read, or not verified, keeps nothing back (docs/decisions/0230).
    is_other: whether it is known to be no reply.
    """
    message = email.message
    if is_blocked(email.workspace, [mailbox["email"] for mailbox in message.addresses.get("from", ())]):
        return BlockedReason.SENDER_BLOCKED
    if route is None:
        return None
    if route.replies_only and is_other:
        return BlockedReason.NOT_A_REPLY
    if route.require_authenticated and message.authentication and message.authentication["result"] != "pass":
        return BlockedReason.NOT_AUTHENTICATED
    if route.spam_above is not None and message.spam and message.spam["score"] >= route.spam_above:
        return BlockedReason.SPAM
    return None
