"""Outgoing messages: one per recipient, with the recipient's links, tracking pixel and footer."""

import functools
import json
from collections.abc import Mapping

from delivery.message.compose import Mailbox, OutgoingMessage
from delivery.message.delivery_request import AttemptHistory, DeliveryRequest, Envelope
from delivery.message.footer import html_footer, text_footer
from delivery.message.html import Slots, fill, find_slots
from delivery.message.text import html_to_text
from emails.rendered_content import RenderedContent
from emails.sending.jobs import SendJob
from emails.sending.links import click_url, open_url, unsubscribe_url
from emails.sending.return_path import return_path
from lib.email_addresses import parse_address

# The last field of Feedback-ID, by which mailbox providers group feedback.
SENDER_ID = "postrider"


class NoSigningKey(Exception):
    """Raised for a message whose domain has no DKIM key that this process can decrypt."""


def build_message(job: SendJob) -> DeliveryRequest:
    """Build the delivery request of a send job. Raises NoSigningKey: nothing is sent unsigned."""
    if job.identity is None or job.identity.key is None:
        raise NoSigningKey(f"no key for {job.email.from_domain}")
    recipient_id = job.claim.recipient_id
    return DeliveryRequest(
        envelope=Envelope(
            sender=return_path(recipient_id, domain=job.identity.return_path_domain), recipient=job.address
        ),
        outgoing_message=_outgoing_message(job),
        key=job.identity.key,
        history=AttemptHistory(attempt=job.claim.attempt, reason=job.reason, age=job.age),
        tags=tuple(job.email.tags),
        metadata=_metadata_texts(job.email.metadata),
    )


def message_id(recipient_id: str, *, domain: str) -> str:
    """Return the Message-ID of a recipient's message: unique per recipient, the same on every attempt."""
    return f"<{recipient_id}@{domain}>"


def _outgoing_message(job: SendJob) -> OutgoingMessage:
    email = job.email
    unsubscribe = unsubscribe_url(job.key, workspace_id=email.workspace_id, address=job.address)
    content = _personalize(job, unsubscribe)
    return OutgoingMessage(
        message_id=message_id(job.key, domain=email.from_domain),
        date=email.date,
        sender=_mailbox(email.sender),
        to=tuple(map(_mailbox, email.to)),
        cc=tuple(map(_mailbox, email.cc)),
        reply_to=_mailbox(email.reply_to) if email.reply_to else None,
        subject=content.subject,
        html=content.html,
        text=content.text,
        headers=tuple(json.loads(email.headers).items()),
        files=job.files,
        unsubscribe_url=unsubscribe,
        feedback_id=f"{email.template_id or 'none'}:{email.workspace_id}:transactional:{SENDER_ID}",
    )


def _personalize(job: SendJob, unsubscribe: str) -> RenderedContent:
    """Return the rendered content with the recipient's links, tracking pixel and footer."""
    content = job.render()
    text = (content.text or _text_of(content.html)) + text_footer(unsubscribe)
    if not content.html:
        return RenderedContent(content.subject, "", text)
    html = fill(
        _slots(content),
        link=(lambda target: click_url(job.key, target=target)) if job.email.track_clicks else None,
        pixel_url=open_url(job.key) if job.email.track_opens else None,
        footer=html_footer(unsubscribe),
    )
    return RenderedContent(content.subject, html, text)


def _slots(content: RenderedContent) -> Slots:
    return (content.segments and content.segments.slots()) or _slots_of(content.html)


# The recipients of one email are claimed together, and their HTML differs only in links.
@functools.lru_cache(maxsize=8)
def _slots_of(html: str) -> Slots:
    return find_slots(html)


@functools.lru_cache(maxsize=8)
def _text_of(html: str) -> str:
    return html_to_text(html)


# A sender uses the same address in all its emails.
@functools.lru_cache(maxsize=256)
def _mailbox(text: str) -> Mailbox:
    address = parse_address(text)
    return Mailbox(name=address.name, spec=address.spec)


def _metadata_texts(metadata: str | None) -> Mapping[str, str]:
    """Return metadata as providers expect it: strings by name."""
    values = json.loads(metadata) if metadata else {}
    return {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in values.items()
    }
