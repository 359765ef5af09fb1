"""The page of a received email, around its content."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from console.dashboard.texts.verdicts import describe_origin, list_checks
from console.dashboard.ui.labels import DELIVERY_TONES, RECEIVED_TONES
from console.dashboard.ui.preview import MAX_SHOWN_BYTES, shown_source
from core.lib.ids import is_id
from emails.models import Email
from interfaces.inbound.inbox.reading import read_headers
from receiving.answers.answering import find_addressee
from receiving.answers.sent import find_answers
from receiving.forwarding.forwards import refusal
from receiving.models import InboundRoute, Message, ReceivedEmail
from receiving.reading.message import cut_text
from receiving.source import preview_kind, read_source, shown_headers
from receiving.states import BlockedReason, ReceivedStatus
from receiving.unread.rereading import reread_state
from webhooks.models import WebhookDelivery

MAX_EMAILS = 20
# The text that is shown while its answer is written.
MAX_ANSWERED_BYTES = 16 * 1024
# Answers to answers, towards the beginning of a conversation.
MAX_STEPS = 10

BLOCKED: dict[str, str | Promise] = {
    BlockedReason.SENDER_BLOCKED: _("Its sender is blocked."),
    BlockedReason.NOT_AUTHENTICATED: _("Its route requires a proven origin."),
    BlockedReason.SPAM: _("Its spam score has reached the limit of its route."),
    BlockedReason.NOT_A_REPLY: _("Its route accepts only answers to emails of this workspace."),
}
AUTOMATIC: dict[str, str | Promise] = {
    Message.Automatic.AUTO_GENERATED: _("Sent by a program"),
    Message.Automatic.AUTO_REPLIED: _("Automatic answer, such as an absence notice"),
    Message.Automatic.LIST: _("From a mailing list"),
    Message.Automatic.BULK: _("Bulk email"),
}
MATCHED_BY: dict[str, str | Promise] = {
    ReceivedEmail.MatchedBy.ADDRESS: _("Found by the signed address to which it was sent."),
    ReceivedEmail.MatchedBy.MESSAGE_ID: _("Found by the Message-ID of the email that it answers."),
}
# Why a forward was not sent, by the code of the problem.
NOT_FORWARDED: dict[str, str | Promise] = {
    "own_domain": _("This service receives the email of this address itself."),
    "daily_limit": _("The route had reached its forwards of the day."),
    "recipient_suppressed": _("The address is on the suppression list."),
    "recipient_not_allowed": _("The recipient rules of the workspace do not allow the address."),
    "recipient_capped": _("The address has got as many emails as a cap of the recipient rules allows."),
    "quota_exceeded": _("The quota of the workspace was used up."),
}


@dataclass(frozen=True)
class ConversationEntry:
    """An email of a conversation. people: its sender, or the recipients of a sent one."""

    url: str
    subject: str
    people: str
    at: datetime
    is_sent: bool
    is_shown: bool = False


@dataclass(frozen=True)
class Conversation:
    """A received email with the emails that it answers and that answer it, oldest first.

    matched_by: how the sent email was found that it answers, as text; empty if it answers none.
    is_original_deleted: whether that one was deleted.
    """

    matched_by: str | Promise
    is_original_deleted: bool
    entries: list[ConversationEntry]


def describe_received(email: ReceivedEmail, deliveries: Sequence[WebhookDelivery]) -> dict[str, Any]:
    """Return the context of the page, with all of the message but its source."""
    message = email.message = Message.objects.get(id=email.message_id)
    return {
        "email": email,
        "can_answer": message.read_at is not None and find_addressee(message) is not None,
        "can_forward": not refusal(email),
        "files": list_files(message),
        "message": message,
        "sender": next(iter(message.addresses.get("from", ())), None),
        "text": cut_text(message.text, MAX_SHOWN_BYTES),
        "is_text_cut": len(message.text.encode()) > MAX_SHOWN_BYTES,
        "origin": describe_origin(message),
        "checks": list_checks(message),
        "blocked": BLOCKED.get(email.blocked_reason, email.blocked_reason),
        "automatic": AUTOMATIC.get(message.automatic, ""),
        "conversation": read_conversation(email),
        "route": InboundRoute.objects.filter(workspace=email.workspace_id, id=email.route_id).first(),
        "deliveries": deliveries,
        "forwards": [(forward, NOT_FORWARDED.get(forward.error, forward.error)) for forward in email.forwards.all()],
        "can_release": email.status == ReceivedStatus.BLOCKED,
        "can_reread": message.is_unread and reread_state(email).is_allowed,
        "is_being_reread": message.is_unread and message.read_at is None,
        "tones": RECEIVED_TONES,
        "delivery_tones": DELIVERY_TONES,
    }


def shown_text(email: ReceivedEmail) -> str:
    """Return the text of an email without quotes, for the page of its answer."""
    message = Message.objects.only("text", "reply_text").get(id=email.message_id)
    return cut_text(message.reply_text or message.text, MAX_ANSWERED_BYTES)


def read_deliveries(email: ReceivedEmail) -> list[WebhookDelivery]:
    """Return the webhook deliveries of a received email, oldest first."""
    if not email.event_id:
        return []
    events = [event for event in (email.unread_event_id, email.event_id) if event]
    rows = WebhookDelivery.objects.filter(workspace=email.workspace_id, event__in=events)
    return list(rows.select_related("webhook").defer("attempts").order_by("created_at", "id"))


def read_conversation(email: ReceivedEmail) -> Conversation | None:
    """Return the conversation that a received email belongs to; None if it has no other email.

    At most MAX_EMAILS of each kind are in it, and this one in any case.
    """
    first, original = _find_beginning(email)
    received = _answers_to([first.reply_email_id] if first.reply_email_id else [], email) or [first]
    sent = find_answers(received)
    later = _answers_to([answer.id for answer in sent], email)
    sent = list({answer.id: answer for answer in (*sent, *find_answers(later))}.values())
    found = {one.id: one for one in (first, *received, *later, email)}
    entries = [_received_entry(one, is_shown=one == email) for one in found.values()]
    entries += [_sent_entry(one) for one in (*([original] if original else []), *sent)]
    if len(entries) == 1 and not email.reply_email_id:
        return None
    matched_by = MATCHED_BY.get(email.reply_matched_by, "") if email.reply_email_id else ""
    is_deleted = bool(first.reply_email_id) and original is None
    return Conversation(matched_by, is_deleted, sorted(entries, key=lambda entry: entry.at))


def find_original(email: ReceivedEmail) -> Email | None:
    """Return the sent email that a received one answers; None without one, or if it was deleted."""
    if not email.reply_email_id:
        return None
    emails = Email.objects.filter(workspace=email.workspace_id, id=email.reply_email_id)
    return emails.defer("template_data", "search_text").first()


def _find_beginning(email: ReceivedEmail) -> tuple[ReceivedEmail, Email | None]:
    """Return the first received email of a conversation, and the sent email that it answers."""
    first, original = email, find_original(email)
    for _number in range(MAX_STEPS):
        received_id = ((original.metadata if original else None) or {}).get("inboundId", "")
        if not is_id(str(received_id), prefix="inb_"):
            break
        answered = _received(email).filter(id=received_id).first()
        if answered is None:
            break
        first, original = answered, find_original(answered)
    return first, original


def _answers_to(sent_ids: Sequence[str], email: ReceivedEmail) -> list[ReceivedEmail]:
    rows = _received(email).filter(reply_email_id__in=sent_ids).order_by("received_at", "id")
    return list(rows[:MAX_EMAILS]) if sent_ids else []


def _received(email: ReceivedEmail) -> QuerySet[ReceivedEmail]:
    """Return the received emails of the workspace, test emails for a test email."""
    return ReceivedEmail.objects.filter(workspace=email.workspace_id, is_test=email.is_test).without_content()


def _received_entry(email: ReceivedEmail, *, is_shown: bool) -> ConversationEntry:
    url = reverse("dashboard:receiving_receivedemail_change", args=[email.id])
    return ConversationEntry(url, email.subject, email.sender, email.received_at, is_sent=False, is_shown=is_shown)


def _sent_entry(email: Email) -> ConversationEntry:
    url = reverse("dashboard:emails_email_change", args=[email.id])
    return ConversationEntry(url, email.subject, email.addressees, email.created_at, is_sent=True)


def list_files(message: Message) -> list[dict[str, Any]]:
    """Return the attachments, each with the kind of its preview: `image`, `text`, or none."""
    return [{**entry, "preview": preview_kind(entry)} for entry in message.attachments]


def describe_source(message: Message) -> dict[str, Any]:
    """Return the headers and the source, which is cut."""
    source = bytearray()
    for piece in read_source(message):
        source += piece
        if len(source) > MAX_SHOWN_BYTES:
            break
    text, is_cut = shown_source(bytes(source))
    return {"headers": shown_headers(message) or read_headers(bytes(source)), "source": text, "is_cut": is_cut}
