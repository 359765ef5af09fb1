"""Turn claimed rows into frozen values that know no database: a few queries for any number of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from delivery.message import Letter, Mailbox
from delivery.transports.smtp import Envelope
from emails.addresses import parse_address
from emails.models import Email, Recipient
from emails.queue import Claim


@dataclass(frozen=True)
class Parcel:
    """All that it takes to send to one recipient, as it is stored."""

    claim: Claim
    envelope: Envelope
    message_id: str
    date: datetime
    sender: str
    to: tuple[str, ...]
    cc: tuple[str, ...]
    reply_to: str | None
    subject: str
    html: str
    text: str

    @property
    def key(self) -> str:
        return self.claim.recipient_id

    def letter(self) -> Letter:
        """Read the addresses; what fails here fails this recipient alone."""
        return Letter(
            message_id=self.message_id,
            date=self.date,
            sender=_mailbox(self.sender),
            to=tuple(map(_mailbox, self.to)),
            cc=tuple(map(_mailbox, self.cc)),
            reply_to=_mailbox(self.reply_to) if self.reply_to else None,
            subject=self.subject,
            html=self.html,
            text=self.text,
        )


def pack(claims: Sequence[Claim]) -> list[Parcel]:
    """Read what the claimed recipients are to be sent, in one query."""
    by_id = {held.recipient_id: held for held in claims}
    recipients = Recipient.objects.filter(id__in=by_id).select_related("email__content")
    return [_parcel(by_id[recipient.id], recipient) for recipient in recipients]


def _parcel(held: Claim, recipient: Recipient) -> Parcel:
    email = recipient.email
    return Parcel(
        claim=held,
        envelope=Envelope(sender=_return_path(recipient), recipient=recipient.address),
        message_id=message_id(email, recipient.id),
        date=email.date,
        sender=email.sender,
        to=tuple(email.to),
        cc=tuple(email.cc),
        reply_to=email.reply_to,
        subject=email.subject,
        html=email.content.html,
        text=email.content.text,
    )


def message_id(email: Email, recipient_id: str) -> str:
    """Return the Message-ID of a recipient's copy: the same on every attempt, another for every copy."""
    return f"<{recipient_id}@{email.from_domain}>"


def _return_path(recipient: Recipient) -> str:
    return f"{recipient.id}@{settings.RETURN_PATH_DOMAIN}"


def _mailbox(text: str) -> Mailbox:
    address = parse_address(text)
    return Mailbox(name=address.name, spec=address.spec)
