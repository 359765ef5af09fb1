"""Publishing received emails: the moves of their status, and the events `received` and `replied`."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from django.db.models.functions import Now

from core.lib.ids import from_uuid
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


def move_email(email: ReceivedEmail, *, status: ReceivedStatus, **changes: Any) -> bool:
    """Move an email to a status with other changes, if the transition table allows it; return whether it was moved.

    The object has the changes, but not the time of the move.
    """
    rows = ReceivedEmail.objects.filter(id=email.id, status__in=TRANSITIONS[status])
    if not rows.update(status=status, **{"processed_at": Now(), **changes}):
        return False
    for name, value in {"status": status, **changes}.items():
        setattr(email, name, value)
    return True


def publish_email(email: ReceivedEmail, *, status: ReceivedStatus, **changes: Any) -> None:
    """Move an email to a published status and record its events, in the caller's transaction.

    An email that was published without its content gets a second event (docs/decisions/0277); it is counted once.
    """
    event = NewEvent(EventKind.RECEIVED, workspace_id=email.workspace_id, details={"id": email.id})
    earlier = email.event_id
    ids = {"event_id": from_uuid(event.id, prefix="evt_"), "unread_event_id": earlier}
    if not move_email(email, status=status, blocked_reason="", **ids, **changes):
        return
    events = [event, *_replied(email)]
    if not earlier:
        count_received(email)
    record_events(events)


def _replied(email: ReceivedEmail) -> Iterator[NewEvent]:
    """Yield the event of the sent email that was answered, at most MAX_REPLIED for each of its recipients.

    An answer has one, also if it is published twice.
    """
    if not email.reply_recipient_id or email.message.automatic != Message.Automatic.NO:
        return
    earlier = Event.objects.filter(email=email.reply_email_id, recipient=email.reply_recipient_id)
    answers = earlier.filter(kind=EventKind.REPLIED).values_list("payload__inboundId", flat=True)[:MAX_REPLIED]
    if len(answers) < MAX_REPLIED and email.id not in answers:
        yield NewEvent(
            EventKind.REPLIED,
            email.reply_email_id,
            email.reply_recipient_id,
            email.reply_address,
            {"inboundId": email.id},
        )


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
    while _json_bytes(resource) > BODY_BYTES and limits["html"]:
        limits = {name: limit // 2 for name, limit in limits.items()}
        _cut(resource, limits)
    return resource


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
