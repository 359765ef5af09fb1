"""Turn claimed rows into frozen values that know no database: a few queries for any number of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from api.addresses import parse_address
from delivery.consignment import Envelope
from delivery.message import File, Letter, Mailbox
from emails.models import Attachment, Email, Recipient
from emails.queue import Claim
from emails.wording import wording_of


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
    email: Email
    files: tuple[File, ...]

    @property
    def key(self) -> str:
        return self.claim.recipient_id

    def letter(self) -> Letter:
        """Read the addresses; what fails here fails this recipient alone."""
        wording = wording_of(self.email)
        return Letter(
            message_id=self.message_id,
            date=self.date,
            sender=_mailbox(self.sender),
            to=tuple(map(_mailbox, self.to)),
            cc=tuple(map(_mailbox, self.cc)),
            reply_to=_mailbox(self.reply_to) if self.reply_to else None,
            subject=wording.subject,
            html=wording.html,
            text=wording.text,
            headers=tuple(self.email.headers.items()),
            files=self.files,
        )


def pack(claims: Sequence[Claim]) -> list[Parcel]:
    """Read what the claimed recipients are to be sent, in two queries."""
    by_id = {held.recipient_id: held for held in claims}
    related = Recipient.objects.select_related("email__content", "email__template_version")
    recipients = list(related.filter(id__in=by_id))
    files = _files({recipient.email.content_id for recipient in recipients if recipient.email.content_id})
    return [_parcel(by_id[recipient.id], recipient, files) for recipient in recipients]


def _files(content_ids: set[str]) -> dict[str, tuple[File, ...]]:
    found: dict[str, tuple[File, ...]] = {}
    for file in Attachment.objects.filter(content__in=content_ids).order_by("content_id", "position"):
        packed = File(file.filename, file.content_type, bytes(file.data), file.cid)
        found[file.content_id] = (*found.get(file.content_id, ()), packed)
    return found


def _parcel(held: Claim, recipient: Recipient, files: dict[str, tuple[File, ...]]) -> Parcel:
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
        email=email,
        files=files.get(email.content_id or "", ()),
    )


def message_id(email: Email, recipient_id: str) -> str:
    """Return the Message-ID of a recipient's copy: the same on every attempt, another for every copy."""
    return f"<{recipient_id}@{email.from_domain}>"


def _return_path(recipient: Recipient) -> str:
    return f"{recipient.id}@{settings.RETURN_PATH_DOMAIN}"


def _mailbox(text: str) -> Mailbox:
    address = parse_address(text)
    return Mailbox(name=address.name, spec=address.spec)
