"""Publishing received emails: the moves of their status, and the events `received` and `replied`."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from core.lib.ids import from_uuid, to_uuid
from core.lib.sql import run, run_replanned
from events.kinds import EventKind
from events.models import Event
from events.recording import NewEvent, record_events
from events.subjects import SubjectDescription
from receiving.arrival.usage import count_received
from receiving.models import InboundRoute, Message, ReceivedEmail
from receiving.reading.message import cut_text
from receiving.rendering import RECEIVED_IN_WEBHOOKS, ReceivedItemSerializer
from receiving.states import TRANSITIONS, ReceivedStatus

MAX_REPLIED = 20
# Bytes of a webhook body: of the texts, of the headers, and of all of it.
TEXT_BYTES = 256 * 1024
HEADER_BYTES = 64 * 1024
BODY_BYTES = 1000 * 1024
LONG_TEXTS = ("text", "replyText", "html")
# Bytes of a character in JSON at most, such as \u001f (docs/decisions/0360).
MAX_CHARACTER_BYTES = 6
MOVE = """
UPDATE receiving_receivedemail e
   SET status = v.status, blocked_reason = v.blocked_reason, sender = v.sender, subject = v.subject,
       event_id = coalesce(v.event_id, e.event_id),
       unread_event_id = CASE WHEN v.event_id IS NULL THEN e.unread_event_id ELSE e.event_id END,
       reply_email_id = v.reply_email_id, reply_recipient_id = v.reply_recipient_id, reply_address = v.reply_address,
       reply_matched_by = v.reply_matched_by, is_from_recipient = v.is_from_recipient,
       processed_at = CASE WHEN NOT v.is_forwarded THEN now() END,
       -- It is not deleted before it is forwarded (docs/decisions/0281).
       forward_due_at = CASE WHEN v.is_forwarded THEN now() ELSE e.forward_due_at END
  FROM json_to_recordset(%s) AS v (
       id uuid, before text[], status text, blocked_reason text, event_id uuid, sender text, subject text,
       reply_email_id uuid, reply_recipient_id uuid, reply_address text, reply_matched_by text,
       is_from_recipient boolean, is_forwarded boolean)
 WHERE e.id = v.id AND e.status = ANY(v.before)
RETURNING e.id
"""
FIND_REPLIED = f"""
SELECT given.recipient_id, found.answer
  FROM unnest(%s::uuid[], %s::uuid[]) AS given (email_id, recipient_id)
  CROSS JOIN LATERAL (
    SELECT payload->>'inboundId' AS answer FROM emails_event
     WHERE email_id = given.email_id AND recipient_id = given.recipient_id AND kind = '{EventKind.REPLIED.value}'
     LIMIT %s) found
"""  # noqa: S608 - a constant


@dataclass(frozen=True)
class Move:
    """The move of an email, whose other columns have their new values already, to a status.

    blocked_reason: why it is kept back; otherwise it is published.
    is_forwarded: by its route, afterwards.
    """

    email: ReceivedEmail
    status: ReceivedStatus
    blocked_reason: str = ""
    is_forwarded: bool = False

    def row(self, event: NewEvent | None) -> dict[str, Any]:
        """Return the values of MOVE. event: `received`, if the email is published."""
        email = self.email
        return {
            "id": str(to_uuid(email.id, prefix="inb_")),
            "before": [*TRANSITIONS[self.status]],
            "status": self.status,
            "blocked_reason": self.blocked_reason,
            "event_id": event and str(event.id),
            "sender": email.sender,
            "subject": email.subject,
            "reply_email_id": email.reply_email_id and str(to_uuid(email.reply_email_id)),
            "reply_recipient_id": email.reply_recipient_id and str(to_uuid(email.reply_recipient_id)),
            "reply_address": email.reply_address,
            "reply_matched_by": email.reply_matched_by,
            "is_from_recipient": email.is_from_recipient,
            "is_forwarded": self.is_forwarded,
        }


def move_emails(moves: Sequence[Move]) -> None:
    """Move emails if the transition table allows it, and record the events of published ones.

    In the caller's transaction, which has locked them. An email that was published without its content gets a second
    event (docs/decisions/0277); it is counted once.
    """
    events = {
        move.email.id: NewEvent(EventKind.RECEIVED, workspace_id=move.email.workspace_id, details={"id": move.email.id})
        for move in moves
        if not move.blocked_reason
    }
    if not moves:
        return
    rows = json.dumps([move.row(events.get(move.email.id)) for move in moves])
    moved = {from_uuid(id_, prefix="inb_") for (id_,) in run_replanned(MOVE, [rows])}
    published = [move.email for move in moves if move.email.id in moved and not move.blocked_reason]
    replied = _replied(published)
    count_received(email for email in published if not email.event_id)
    record_events([event for email in published for event in (events[email.id], *replied.get(email.id, ()))])
    for move in moves:
        if move.email.id in moved:
            _set_columns(move, events.get(move.email.id))


def _set_columns(move: Move, event: NewEvent | None) -> None:
    """Give the object of a moved email its new columns, except for the time."""
    email = move.email
    email.status, email.blocked_reason = move.status, move.blocked_reason
    if event:
        email.event_id, email.unread_event_id = from_uuid(event.id, prefix="evt_"), email.event_id


def _replied(emails: Sequence[ReceivedEmail]) -> dict[str, list[NewEvent]]:
    """Return the event of the sent email that each one answers, at most MAX_REPLIED for each of its recipients.

    An answer has one, also if it is published twice.
    """
    answers = [one for one in emails if one.reply_recipient_id and one.message.automatic == Message.Automatic.NO]
    if not answers:
        return {}
    asked = sorted({(one.reply_email_id or "", one.reply_recipient_id or "") for one in answers})
    ids = [[to_uuid(email) for email, _ in asked], [to_uuid(recipient) for _, recipient in asked]]
    earlier: dict[str, set[str]] = {recipient: set() for _, recipient in asked}
    for recipient, answer in run(FIND_REPLIED, [*ids, MAX_REPLIED]):
        earlier[from_uuid(recipient)].add(answer)
    events: dict[str, list[NewEvent]] = {}
    for one in answers:
        known = earlier[one.reply_recipient_id or ""]
        if len(known) < MAX_REPLIED and one.id not in known:
            known.add(one.id)
            details = {"inboundId": one.id}
            events[one.id] = [
                NewEvent(EventKind.REPLIED, one.reply_email_id, one.reply_recipient_id, one.reply_address, details)
            ]
    return events


def describe_received(events: Sequence[Event], is_whole: bool) -> dict[int, SubjectDescription]:  # noqa: FBT001
    """Return the emails of events as webhooks show them, or without content (events.subjects.Describe)."""
    ids = {event.number: event.payload.get("id") for event in events}
    rows = ReceivedEmail.objects.filter(id__in=[id_ for id_ in ids.values() if id_])
    rows = (rows.select_related("message") if is_whole else rows.without_content()).with_replies()
    emails = {row.id: row for row in rows}
    routes = InboundRoute.objects.in_bulk({row.route_id for row in emails.values() if row.route_id})
    return {
        number: SubjectDescription(
            _whole(emails[id_]) if is_whole else ReceivedItemSerializer(emails[id_]).data,
            tuple(route.webhook_ids) if (route := routes.get(emails[id_].route_id or "")) else (),
        )
        for number, id_ in ids.items()
        if id_ in emails
    }


def _whole(email: ReceivedEmail) -> dict[str, Any]:
    """Return the resource within the bounds of a webhook; its URLs do not depend on the attempt."""
    resource: dict[str, Any] = RECEIVED_IN_WEBHOOKS.to_representation(email)
    limits = {"text": TEXT_BYTES, "html": TEXT_BYTES, "headers": HEADER_BYTES}
    _cut(resource, limits)
    while _is_too_large(resource) and limits["html"]:
        limits = {name: limit // 2 for name, limit in limits.items()}
        _cut(resource, limits)
    return resource


def _is_too_large(resource: dict[str, Any]) -> bool:
    """Return whether a resource exceeds BODY_BYTES. Its long texts are measured only if they may be too long."""
    texts = [resource[name] or "" for name in LONG_TEXTS]
    most = _json_bytes({**resource, **dict.fromkeys(LONG_TEXTS)}) + MAX_CHARACTER_BYTES * sum(map(len, texts))
    return most > BODY_BYTES and _json_bytes(resource) > BODY_BYTES


def _cut(resource: dict[str, Any], limits: dict[str, int]) -> None:
    for name, limit in limits.items():
        value = resource[name]
        shorter = cut_text(value, limit) if isinstance(value, str) else _cut_fields(value, limit)
        if shorter != value:
            resource[name] = shorter
            resource["truncated"] = sorted({*resource["truncated"], name})


def _cut_fields(fields: list[list[str]], limit: int) -> list[list[str]]:
    size, kept = 0, []
    for field in fields:
        size += _json_bytes(field)
        if size > limit:
            break
        kept.append(field)
    return kept


def _json_bytes(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode())
