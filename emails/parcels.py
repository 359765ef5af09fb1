"""Turn claimed rows into frozen values that know no database: a few queries for any number of them."""

import functools
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Sum
from django.db.models.functions import Now

from api.addresses import parse_address
from delivery.consignment import Consignment, Envelope, History
from delivery.footer import html_footer, text_footer
from delivery.html import Slots, fill, find_slots
from delivery.message import File, Letter, Mailbox
from delivery.plain_text import text_of_html
from domains.identities import Identity, identities
from emails.links import click_url, open_url, unsubscribe_url
from emails.models import Attachment, Email, Recipient
from emails.queue import Claim
from emails.return_path import return_path
from emails.wording import Wording, wording_of

# What an operator tells senders apart by, the last field of Feedback-ID.
SENDER_ID = "postrider"


class Unsignable(Exception):
    """Raised for a message whose domain has no key that this process can open."""


@dataclass(frozen=True)
class Parcel:
    """All that it takes to send to one recipient, as it is stored."""

    claim: Claim
    recipient: Recipient
    identity: Identity | None
    files: tuple[File, ...]
    read_at: datetime

    @property
    def key(self) -> str:
        return self.claim.recipient_id

    def consignment(self) -> Consignment:
        """Write the letter and address it; what fails here fails this recipient alone.

        Raises Unsignable: nothing leaves without a signature.
        """
        email, recipient = self.recipient.email, self.recipient
        if self.identity is None or self.identity.key is None:
            raise Unsignable(f"no key for {email.from_domain}")
        sender = return_path(recipient.id, domain=self.identity.return_path_domain)
        return Consignment(
            envelope=Envelope(sender=sender, recipient=recipient.address),
            letter=_letter(recipient, self.files),
            key=self.identity.key,
            history=_history(self.claim, recipient, self.read_at),
            tags=tuple(email.tags),
            metadata={name: _text(value) for name, value in (email.metadata or {}).items()},
        )


def weigh(claims: Sequence[Claim]) -> dict[str, int]:
    """Return the bytes of files behind each claim that has some, by recipient id."""
    weighed = Recipient.objects.filter(
        id__in=[held.recipient_id for held in claims], email__content__attachments__isnull=False
    ).annotate(weight=Sum("email__content__attachments__size"))
    return dict(weighed.values_list("id", "weight"))


def pack(claims: Sequence[Claim]) -> list[Parcel]:
    """Read what the claimed recipients are to be sent, in three queries."""
    by_id = {held.recipient_id: held for held in claims}
    related = Recipient.objects.select_related("email__content", "email__template_version").annotate(read_at=Now())
    recipients = list(related.filter(id__in=by_id))
    files = _files({recipient.email.content_id for recipient in recipients if recipient.email.content_id})
    known = identities({(recipient.email.workspace_id, recipient.email.from_domain) for recipient in recipients})
    return [
        Parcel(
            claim=by_id[recipient.id],
            recipient=recipient,
            identity=known.get((recipient.email.workspace_id, recipient.email.from_domain)),
            files=files.get(recipient.email.content_id or "", ()),
            read_at=recipient.read_at,
        )
        for recipient in recipients
    ]


def message_id(email: Email, recipient_id: str) -> str:
    """Return the Message-ID of a recipient's copy: the same on every attempt, another for every copy."""
    return f"<{recipient_id}@{email.from_domain}>"


def _files(content_ids: Collection[str]) -> dict[str, tuple[File, ...]]:
    found: dict[str, tuple[File, ...]] = {}
    for file in Attachment.objects.filter(content__in=content_ids).order_by("content_id", "position"):
        packed = File(file.filename, file.content_type, bytes(file.data), file.cid)
        found[file.content_id] = (*found.get(file.content_id, ()), packed)
    return found


def _letter(recipient: Recipient, files: tuple[File, ...]) -> Letter:
    email = recipient.email
    wording = personal(recipient)
    return Letter(
        message_id=message_id(email, recipient.id),
        date=email.date,
        sender=_mailbox(email.sender),
        to=tuple(map(_mailbox, email.to)),
        cc=tuple(map(_mailbox, email.cc)),
        reply_to=_mailbox(email.reply_to) if email.reply_to else None,
        subject=wording.subject,
        html=wording.html,
        text=wording.text,
        headers=tuple(email.headers.items()),
        files=files,
        unsubscribe_url=_unsubscribe_url(recipient),
        feedback_id=f"{email.template_id or 'none'}:{email.workspace_id}:transactional:{SENDER_ID}",
    )


def personal(recipient: Recipient) -> Wording:
    """Return the wording with this recipient's links, pixel and footer."""
    email, wording = recipient.email, wording_of(recipient.email)
    unsubscribe = _unsubscribe_url(recipient)
    text = (wording.text or _text_of(wording.html)) + text_footer(unsubscribe)
    if not wording.html:
        return Wording(wording.subject, "", text)
    html = fill(
        _slots(wording.html),
        link=(lambda target: click_url(recipient.id, target=target)) if email.track_clicks else None,
        pixel_url=open_url(recipient.id) if email.track_opens else None,
        footer=html_footer(unsubscribe),
    )
    return Wording(wording.subject, html, text)


def _unsubscribe_url(recipient: Recipient) -> str:
    return unsubscribe_url(recipient.id, workspace_id=recipient.email.workspace_id, address=recipient.address)


# The copies of one email are claimed together, and say the same but for their links.
@functools.lru_cache(maxsize=8)
def _slots(html: str) -> Slots:
    return find_slots(html)


@functools.lru_cache(maxsize=8)
def _text_of(html: str) -> str:
    return text_of_html(html)


def _history(held: Claim, recipient: Recipient, read_at: datetime) -> History:
    age = read_at - recipient.replied_at if recipient.replied_at else timedelta()
    return History(attempt=held.attempt, reason=recipient.reason or "", age=age)


def _mailbox(text: str) -> Mailbox:
    address = parse_address(text)
    return Mailbox(name=address.name, spec=address.spec)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
