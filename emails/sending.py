"""The work of a drain: claim, pack, hand over, record."""

import functools
from collections.abc import Collection, Sequence

from django.conf import settings
from django.db import transaction

from delivery.message import compose
from delivery.replies import Outcome, Reply, Verdict
from delivery.transports.smtp import Destination, LeaseLost, SmtpTransport
from drain.engine import Drain
from drain.leases import Lease
from emails import queue
from emails.models import Event, Pending, Recipient
from emails.outcomes import Result, record
from emails.parcels import Parcel, pack
from emails.timeline import NewEvent, add_events

WORKER_LOST = {
    "code": None,
    "enhancedCode": None,
    "message": "The worker that was sending this ended without a result. It may have been delivered; it is sent again.",
    "reason": "worker_lost",
}


class Sending:
    """Emails, as drain.engine.Work sees them."""

    kind = "emails"

    def __init__(self, transport: SmtpTransport, *, sessions: int) -> None:
        self.sessions = sessions
        self._transport = transport
        self._cursor = queue.Cursor()

    def claim(self, limit: int) -> list[Parcel]:
        promote_due()
        return pack(self._cursor.claim(limit))

    async def perform(self, parcel: Parcel, lease: Lease) -> Result:
        try:
            outcome = await self._transport.deliver(parcel.envelope, compose(parcel.letter()), lease=lease)
        except LeaseLost:
            # Fenced when it is recorded, if the lease is indeed lost; tried again soon, if not.
            outcome = Outcome(
                Verdict.DEFERRED, Reply(0, "The worker lost its lease before the message was sent."), "lease_lost"
            )
        return Result(parcel.claim, outcome)

    def crashed(self, parcel: Parcel, error: BaseException) -> Result:
        text = f"An error of this service: {type(error).__name__}."
        return Result(parcel.claim, Outcome(Verdict.DEFERRED, Reply(0, text), "internal_error"))

    def record(self, results: Sequence[Result]) -> None:
        record(results)

    def renew(self, parcels: Collection[Parcel]) -> None:
        queue.renew([parcel.claim for parcel in parcels])


@transaction.atomic
def promote_due() -> None:
    """Make due rows ready; tell of those whose worker died, because their mail may have been delivered."""
    lost = [recipient_id for recipient_id, stage in queue.promote() if stage == Pending.Stage.LEASED]
    recipients = Recipient.objects.filter(id__in=lost) if lost else ()
    add_events(
        [NewEvent(Event.Kind.DEFERRED, found.email_id, found.id, found.address, WORKER_LOST) for found in recipients]
    )


@functools.lru_cache(maxsize=1)
def emails_drain() -> Drain[Parcel, Result]:
    """Return this process's drain of emails."""
    inbox = Destination(host="127.0.0.1", port=settings.INBOX_PORT, ehlo_name=settings.EHLO_NAME)
    transport = SmtpTransport(inbox, on_acceptance=Verdict.DELIVERED)
    return Drain(Sending(transport, sessions=settings.DELIVERY_CONNECTIONS))
