"""The page of a received email, around its content."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from console.dashboard.texts.verdicts import describe_origin, list_checks
from console.dashboard.ui.labels import DELIVERY_TONES, RECEIVED_TONES
from console.dashboard.ui.preview import MAX_SHOWN_BYTES, shown_source
from emails.models import Email
from interfaces.inbound.inbox.reading import read_headers
from receiving.models import InboundRoute, Message, ReceivedEmail
from receiving.reading.message import cut_text
from receiving.source import read_source, shown_headers
from receiving.states import BlockedReason, ReceivedStatus
from receiving.unread.rereading import reread_state
from webhooks.models import WebhookDelivery

MAX_REPLIES = 20

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
# Why a forward was not sent, by the code of the problem.
NOT_FORWARDED: dict[str, str | Promise] = {
    "own_domain": _("This service receives the email of this address itself."),
    "daily_limit": _("The route had reached its forwards of the day."),
    "recipient_suppressed": _("The address is on the suppression list."),
    "quota_exceeded": _("The quota of the workspace was used up."),
}


@dataclass(frozen=True)
class Conversation:
    """The sent email that is answered, and the answers to it, oldest first.

    sent: None if it was deleted.
    matched_by: how it was found, as text.
    """

    sent: Email | None
    matched_by: str | Promise
    replies: list[ReceivedEmail]


def describe_received(email: ReceivedEmail, deliveries: Sequence[WebhookDelivery]) -> dict[str, Any]:
    """Return the context of the page, with all of the message but its source."""
    message = Message.objects.get(id=email.message_id)
    return {
        "email": email,
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


def read_deliveries(email: ReceivedEmail) -> list[WebhookDelivery]:
    """Return the webhook deliveries of a received email, oldest first."""
    if not email.event_id:
        return []
    events = [event for event in (email.unread_event_id, email.event_id) if event]
    rows = WebhookDelivery.objects.filter(workspace=email.workspace_id, event__in=events)
    return list(rows.select_related("webhook").defer("attempts").order_by("created_at", "id"))


def read_conversation(email: ReceivedEmail) -> Conversation | None:
    """Return the conversation that a received email belongs to; None if it answers no email of the workspace."""
    if not email.reply_email_id:
        return None
    sent = Email.objects.filter(workspace=email.workspace_id, id=email.reply_email_id)
    replies = ReceivedEmail.objects.filter(workspace=email.workspace_id, reply_email_id=email.reply_email_id)
    matched_by = (
        _("Found by the signed address to which it was sent.")
        if email.reply_matched_by == ReceivedEmail.MatchedBy.ADDRESS
        else _("Found by the Message-ID of the email that it answers.")
    )
    # The oldest ones, and this one in any case.
    shown = list(replies.order_by("received_at", "id")[:MAX_REPLIES])
    return Conversation(
        sent.defer("template_data", "search_text").first(),
        matched_by,
        shown if email in shown else [*shown[:-1], email],
    )


def describe_source(message: Message) -> dict[str, Any]:
    """Return the headers and the source, which is cut."""
    source = bytearray()
    for piece in read_source(message):
        source += piece
        if len(source) > MAX_SHOWN_BYTES:
            break
    text, is_cut = shown_source(bytes(source))
    return {"headers": shown_headers(message) or read_headers(bytes(source)), "source": text, "is_cut": is_cut}
