"""Processing of messages that were read: the reading is saved, and each received email is published or blocked.

One transaction for several messages, each guarded by the fence of its claim.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import DataError, transaction

from core.lib.ids import from_uuid, to_uuid
from core.lib.sql import run, run_replanned
from core.lib.worker.failpoints import failpoint
from receiving.answers.matching import match_replies
from receiving.arrival.routing import BLOCKS, blockable_names
from receiving.models import Message, ReceivedEmail
from receiving.publishing import Move, move_emails
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
KEEP_UNREADABLE = """
UPDATE receiving_message SET read_at = now() WHERE id = ANY(%s) AND reread_at IS NOT NULL RETURNING id
"""
READING_TYPES = {
    "subject": "text", "sender": "text", "addresses": "jsonb", "date": "timestamptz", "message_id": "text",
    "in_reply_to": "text", "references": "text[]", "text": "text", "text_generated": "boolean", "reply_text": "text",
    "html": "text", "truncated": "text[]", "headers": "jsonb", "attachments": "jsonb", "automatic": "text",
    "parse_errors": "text[]", "authentication": "jsonb", "spam": "jsonb",
}  # fmt: skip
SAVE = f"""
UPDATE receiving_message m SET read_at = now(), {", ".join(f'"{name}" = v."{name}"' for name in READING_TYPES)}
  FROM json_to_recordset(%s) AS v (id uuid, {", ".join(f'"{name}" {type_}' for name, type_ in READING_TYPES.items())})
 WHERE m.id = v.id
"""  # noqa: S608 - constants
FIND_EMAILS = f"""
SELECT e.*, {BLOCKS.format(workspace="e.workspace_id", senders="read.senders")} AS is_sender_blocked,
       r.forward_to <> '{{}}' AS route_forwards, r.replies_only AS route_replies_only,
       r.require_authenticated AS route_authenticates, r.spam_above AS route_spam_above
  FROM json_to_recordset(%s) AS read (id uuid, senders text[])
  JOIN receiving_receivedemail e ON e.message_id = read.id
  LEFT JOIN receiving_inboundroute r ON r.id = e.route_id
 ORDER BY e.id FOR UPDATE OF e
"""  # noqa: S608 - constants


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


def record_readings(results: Sequence[ReadResult]) -> list[MessageClaim]:
    """Save readings and publish their emails, in one transaction; return the claims whose lease was lost.

    If they cannot be saved, each is saved alone; of one that cannot be saved, that it is unreadable.
    """
    try:
        return _record(results)
    except (ValueError, DataError):
        # It would be a bug, and must not stop the queue.
        log.exception("readings could not be saved", extra={"data": {"together": len(results)}})
    if len(results) == 1:
        return _record([ReadResult(results[0].claim, None, error=NOT_READ)])
    return [claim for result in results for claim in record_readings([result])]


@transaction.atomic
def _record(results: Sequence[ReadResult]) -> list[MessageClaim]:
    leased = QUEUE.lock_claimed([result.claim for result in results])
    valid = [result for result in results if result.claim in leased]
    unchanged = _keep_unreadable([result for result in valid if result.error])
    saved = {str(result.claim.key): result for result in valid if result.claim.key not in unchanged}
    if saved:
        _save({key: (result, _message(result)) for key, result in saved.items()})
    failpoint("receiving.before_record_commit")
    return [result.claim for result in results if result.claim not in leased]


def _keep_unreadable(results: Sequence[ReadResult]) -> set[UUID]:
    """Return the messages that were reread, and of which no more is known than before (docs/decisions/0277)."""
    if not results:
        return set()
    return {id_ for (id_,) in run(KEEP_UNREADABLE, [[result.claim.key for result in results]])}


def _save(read: Mapping[str, tuple[ReadResult, Message]]) -> None:
    """Save readings, and match, publish or block the emails of their messages."""
    rows = [_message_row(key, message) for key, (_, message) in read.items()]
    run_replanned(SAVE, [json.dumps(rows, ensure_ascii=False)])
    senders = [{"id": key, "senders": sorted(_senders(message))} for key, (_, message) in read.items()]
    emails = list(ReceivedEmail.objects.raw(FIND_EMAILS, [json.dumps(senders)]))
    for email in emails:
        _, email.message = read[str(to_uuid(email.message_id, prefix="msg_"))]
        email.sender, email.subject = email.message.sender, email.message.subject
    matches = match_replies(emails)
    for email in emails:
        if match := matches.get(email.id):
            for name, value in match.columns(email.message).items():
                setattr(email, name, value)
    results = {message.id: result for result, message in read.values()}
    move_emails([_move(email, results[email.message_id], is_reply=email.id in matches) for email in emails])


def _message(result: ReadResult) -> Message:
    """Return a message with the columns of its reading; the others are missing."""
    message = Message(id=from_uuid(result.claim.key, prefix="msg_"), **_columns(result))
    message.authentication, message.spam = result.authentication, result.spam
    return message


def _columns(result: ReadResult) -> dict[str, Any]:
    reading = result.reading
    if reading is None:
        return {"parse_errors": [result.error or NOT_READ]}
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


def _message_row(key: str, message: Message) -> dict[str, Any]:
    """Return the values of SAVE."""
    values = {name: getattr(message, name) for name in READING_TYPES}
    return {**values, "id": key, "date": message.date and message.date.isoformat()}


def _senders(message: Message) -> set[str]:
    """Return the addresses and domains in From that a workspace may block."""
    return blockable_names(mailbox["email"] for mailbox in message.addresses.get("from", ()))


def _move(email: Any, result: ReadResult, *, is_reply: bool) -> Move:
    """Return the move of an email, a row of FIND_EMAILS: it is published or blocked."""
    is_other = result.reading is not None and not is_reply
    # An email that was published before its message was reread stays published (docs/decisions/0277).
    if not email.event_id and (reason := _blocked_reason(email, is_other=is_other)):
        return Move(email, ReceivedStatus.BLOCKED, blocked_reason=reason)
    is_released = email.status == ReceivedStatus.PROCESSED
    is_forwarded = bool(email.route_forwards) and not result.error and not is_released
    status = ReceivedStatus.UNREADABLE if result.error else ReceivedStatus.PROCESSED
    return Move(email, status, is_forwarded=is_forwarded)


def _blocked_reason(email: Any, *, is_other: bool) -> BlockedReason | None:
    """Return why an email is kept back: by a block of its sender, or by a rule of its route.

    A rule about something that was not read, or not verified, keeps nothing back (docs/decisions/0230).
    is_other: whether it is known to be no reply.
    """
    message: Message = email.message
    if email.is_sender_blocked:
        return BlockedReason.SENDER_BLOCKED
    if email.route_replies_only and is_other:
        return BlockedReason.NOT_A_REPLY
    if email.route_authenticates and message.authentication and message.authentication["result"] != "pass":
        return BlockedReason.NOT_AUTHENTICATED
    if email.route_spam_above is not None and message.spam and message.spam["score"] >= email.route_spam_above:
        return BlockedReason.SPAM
    return None
