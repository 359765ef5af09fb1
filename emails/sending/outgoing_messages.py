"""Write the letter that one recipient gets: with links, pixel and footer of his own."""

import functools
import json
from collections.abc import Mapping

from delivery.message.compose import Mailbox, OutgoingMessage
from delivery.message.delivery_request import DeliveryRequest, Envelope, History
from delivery.message.footer import html_footer, text_footer
from delivery.message.html import Slots, fill, find_slots
from delivery.message.text import text_of_html
from emails.rendered_content import RenderedContent
from emails.sending.jobs import SendJob
from emails.sending.links import click_url, open_url, unsubscribe_url
from emails.sending.return_path import return_path
from lib.email_addresses import parse_address

# What an operator tells senders apart by, the last field of Feedback-ID.
SENDER_ID = "postrider"


class Unsignable(Exception):
    """Raised for a message whose domain has no key that this process can open."""


def build_message(parcel: SendJob) -> DeliveryRequest:
    """Write a parcel's letter and address it. Raises Unsignable: nothing leaves without a signature."""
    if parcel.identity is None or parcel.identity.key is None:
        raise Unsignable(f"no key for {parcel.mail.from_domain}")
    recipient_id = parcel.claim.recipient_id
    return DeliveryRequest(
        envelope=Envelope(
            sender=return_path(recipient_id, domain=parcel.identity.return_path_domain), recipient=parcel.address
        ),
        letter=_letter(parcel),
        key=parcel.identity.key,
        history=History(attempt=parcel.claim.attempt, reason=parcel.reason, age=parcel.age),
        tags=tuple(parcel.mail.tags),
        metadata=_texts(parcel.mail.metadata),
    )


def message_id(recipient_id: str, *, domain: str) -> str:
    """Return the Message-ID of a recipient's copy: the same on every attempt, another for every copy."""
    return f"<{recipient_id}@{domain}>"


def _letter(parcel: SendJob) -> OutgoingMessage:
    mail = parcel.mail
    unsubscribe = unsubscribe_url(parcel.key, workspace_id=mail.workspace_id, address=parcel.address)
    wording = _personal(parcel, unsubscribe)
    return OutgoingMessage(
        message_id=message_id(parcel.key, domain=mail.from_domain),
        date=mail.date,
        sender=_mailbox(mail.sender),
        to=tuple(map(_mailbox, mail.to)),
        cc=tuple(map(_mailbox, mail.cc)),
        reply_to=_mailbox(mail.reply_to) if mail.reply_to else None,
        subject=wording.subject,
        html=wording.html,
        text=wording.text,
        headers=tuple(json.loads(mail.headers).items()),
        files=parcel.files,
        unsubscribe_url=unsubscribe,
        feedback_id=f"{mail.template_id or 'none'}:{mail.workspace_id}:transactional:{SENDER_ID}",
    )


def _personal(parcel: SendJob, unsubscribe: str) -> RenderedContent:
    """Return the wording with this recipient's links, pixel and footer."""
    wording = parcel.wording()
    text = (wording.text or _text_of(wording.html)) + text_footer(unsubscribe)
    if not wording.html:
        return RenderedContent(wording.subject, "", text)
    html = fill(
        _slots(wording),
        link=(lambda target: click_url(parcel.key, target=target)) if parcel.mail.track_clicks else None,
        pixel_url=open_url(parcel.key) if parcel.mail.track_opens else None,
        footer=html_footer(unsubscribe),
    )
    return RenderedContent(wording.subject, html, text)


def _slots(wording: RenderedContent) -> Slots:
    return (wording.woven and wording.woven.slots()) or _slots_of(wording.html)


# The copies of one email are claimed together, and say the same but for their links.
@functools.lru_cache(maxsize=8)
def _slots_of(html: str) -> Slots:
    return find_slots(html)


@functools.lru_cache(maxsize=8)
def _text_of(html: str) -> str:
    return text_of_html(html)


# A sender's address is the same in all its mail.
@functools.lru_cache(maxsize=256)
def _mailbox(text: str) -> Mailbox:
    address = parse_address(text)
    return Mailbox(name=address.name, spec=address.spec)


def _texts(metadata: str | None) -> Mapping[str, str]:
    """Return metadata as providers take it: texts by name."""
    values = json.loads(metadata) if metadata else {}
    return {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in values.items()
    }
