"""Accept emails. A call that returns has committed everything; one that raises has written nothing."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import transaction

from analytics import tally
from api.fields import wire_time
from domains.services import sending_domain
from drain import bell
from emails.addresses import Address
from emails.idempotency import Answer, Key, claim_key, keep_answer
from emails.insertion import NewContent, NewEmail, NewRecipient, insert_emails
from emails.models import Recipient
from emails.states import State
from workspaces.models import Workspace
from workspaces.quota import take_quota


@dataclass(frozen=True)
class Draft:
    """A checked request to send."""

    sender: Address
    to: tuple[Address, ...]
    subject: str
    html: str = ""
    text: str = ""
    cc: tuple[Address, ...] = ()
    bcc: tuple[Address, ...] = ()
    reply_to: Address | None = None
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] | None = None


def send_email(workspace: Workspace, *, draft: Draft, key: Key | None) -> Answer:
    """Accept one email and ring for the workers.

    Raises DomainNotRegistered, QuotaExceeded, IdempotencyInProgress, IdempotencyKeyReuse.
    """
    content = NewContent(html=draft.html, text=draft.text)
    email = new_email(draft, content_id=content.id)
    with transaction.atomic():
        faster = claim_key(workspace, key)
        if faster:
            return faster
        sending_domain(workspace, name=email.from_domain)
        created_at = insert_emails(workspace, contents=[content], emails=[email], status=State.QUEUED)
        tally.add([(tally.Slot(workspace.id, created_at, f"status.{State.QUEUED}"), 1)])
        body = {"id": email.id, "status": State.QUEUED.value, "createdAt": wire_time(created_at)}
        keep_answer(workspace, key, body)
        take_quota(workspace, units=units_of(email))
        transaction.on_commit(lambda: bell.ring("emails"))
    return Answer(body)


def units_of(email: NewEmail) -> int:
    """Return what an email costs of the quota (QUOTA_UNIT)."""
    return len(email.recipients) if settings.QUOTA_UNIT == "recipient" else 1


def new_email(draft: Draft, *, content_id: str) -> NewEmail:
    """Turn a draft into rows; an address that is named twice is kept once, where it came first."""
    seen: set[str] = set()
    to, cc, bcc = (list(_unseen(group, seen)) for group in (draft.to, draft.cc, draft.bcc))
    kinds = zip(Recipient.Kind, (to, cc, bcc), strict=True)
    return NewEmail(
        content_id=content_id,
        sender=str(draft.sender),
        from_domain=draft.sender.domain,
        reply_to=str(draft.reply_to) if draft.reply_to else None,
        to=[str(address) for address in to],
        cc=[str(address) for address in cc],
        bcc=[str(address) for address in bcc],
        subject=draft.subject,
        tags=list(draft.tags),
        metadata=draft.metadata,
        recipients=[NewRecipient(kind=kind, address=address.spec) for kind, group in kinds for address in group],
    )


def _unseen(addresses: Iterable[Address], seen: set[str]) -> Iterator[Address]:
    for address in addresses:
        if address.spec.lower() not in seen:
            seen.add(address.spec.lower())
            yield address
