"""The work of a drain of system mail: claim, hand over by the transport of all mail, record."""

import functools
import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta

from cryptography.exceptions import InvalidTag
from django.conf import settings

from delivery.bounces.replies import DeliveryOutcome, DeliveryStatus
from delivery.message.compose import Mailbox, OutgoingMessage
from delivery.message.delivery_request import DeliveryRequest, Envelope, History
from delivery.message.dkim import SigningKey
from delivery.transports.interface import LeaseLost, Transport
from domains.models import MAY_SEND, Domain
from domains.signing_identities import identities
from emails.sending.retries import delay_after, max_age
from emails.sending.sending import LEASE_LOST, emails_transport, fault_of_ours
from lib.email_addresses import parse_address
from lib.keyring import UnknownKey
from lib.worker.leases import Lease
from lib.worker.processor import Drain
from system_mail import queue
from system_mail.models import SystemMail
from system_mail.queue import Claim

log = logging.getLogger("postrider.system_mail")

KIND = "system_mail"
SESSIONS = 8
PARKED = timedelta(seconds=5)

State = SystemMail.State
ENDS = {
    DeliveryStatus.SENT: State.SENT,
    DeliveryStatus.DELIVERED: State.SENT,
    DeliveryStatus.BOUNCED: State.FAILED,
    DeliveryStatus.FAILED: State.FAILED,
}


@dataclass(frozen=True)
class Parcel:
    claim: Claim
    consignment: DeliveryRequest

    @property
    def key(self) -> str:
        return self.claim.id


@dataclass(frozen=True)
class Result:
    claim: Claim
    outcome: DeliveryOutcome


class Sending:
    """System mail, as lib.worker.processor.Work sees it."""

    kind = KIND
    held_back = False

    def __init__(self, transport: Transport) -> None:
        self.sessions = SESSIONS
        self.has_found = False
        self._transport = transport

    def claim(self, limit: int) -> list[Parcel]:
        mails = queue.claim(limit)
        self.has_found = bool(mails)
        key = signing_key() if mails else None
        return [parcel for mail in mails if (parcel := _packed(mail, key))]

    async def perform(self, parcel: Parcel, lease: Lease) -> Result:
        try:
            outcome = await self._transport.deliver(parcel.consignment, lease=lease)
        except LeaseLost:
            outcome = LEASE_LOST
        return Result(parcel.claim, outcome)

    def crashed(self, parcel: Parcel, error: BaseException) -> Result:
        return Result(parcel.claim, fault_of_ours(error))

    def record(self, results: Sequence[Result]) -> None:
        for result in results:
            _record(result.claim, result.outcome)

    def renew(self, parcels: Collection[Parcel]) -> None:
        queue.renew([parcel.claim for parcel in parcels])


def _record(held: Claim, outcome: DeliveryOutcome) -> None:
    reply = f"{outcome.reply.code or ''} {outcome.reply.text}".strip()
    if outcome.verdict is DeliveryStatus.PARKED:
        queue.put_off(held, wait=PARKED, reply=reply, attempts=held.attempt - 1)
    elif outcome.verdict is DeliveryStatus.DEFERRED and held.age < max_age():
        queue.put_off(held, wait=delay_after(held.attempt), reply=reply, attempts=held.attempt)
    else:
        queue.finish(held, state=ENDS.get(outcome.verdict, State.FAILED), reply=reply)


def _packed(mail: SystemMail, key: SigningKey | None) -> Parcel | None:
    """Return a parcel; a mail whose seal nobody can open any more ends here, and holds up no other."""
    try:
        return _parcel(mail, key)
    except (InvalidTag, UnknownKey) as error:
        known = {"mail": mail.id, "error": type(error).__name__}
        log.error("a system mail cannot be unsealed", extra={"data": known})  # noqa: TRY400  # a trace would tell no more
        queue.finish(queue.claim_of(mail), state=State.FAILED, reply="Its key has left APP_KEYS.")
        return None


def _parcel(mail: SystemMail, key: SigningKey | None) -> Parcel:
    sender = parse_address(settings.SYSTEM_FROM)
    letter = OutgoingMessage(
        message_id=f"<{mail.id}@{sender.domain}>",
        date=mail.created_at,
        sender=Mailbox(sender.name, sender.spec),
        to=(Mailbox("", mail.recipient),),
        cc=(),
        reply_to=None,
        subject=mail.subject,
        html="",
        text=mail.text,
    )
    # Failures come back to the operator's own mailbox.
    envelope = Envelope(sender=sender.spec, recipient=mail.recipient)
    return Parcel(
        queue.claim_of(mail), DeliveryRequest(envelope, letter, key=key, history=History(attempt=mail.attempts))
    )


def signing_key() -> SigningKey | None:
    """Return the DKIM key of SYSTEM_FROM's domain where a workspace has proved that domain, else None.

    One that is only registered may be a stranger's claim, and its key is in no DNS.
    """
    name = parse_address(settings.SYSTEM_FROM).domain
    proven = Domain.objects.filter(name=name, status__in=MAY_SEND).order_by("verified_at").first()
    if proven is None:
        return None
    pair = (proven.workspace_id, name)
    return identities({pair})[pair].key


@functools.lru_cache(maxsize=1)
def system_mail_drain() -> Drain[Parcel, Result]:
    """Return this process's drain of system mail."""
    return Drain(Sending(emails_transport()))
