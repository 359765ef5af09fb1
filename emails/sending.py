"""The work of a drain: claim, pack, hand over, record."""

import functools
from collections.abc import Collection, Sequence

from django.conf import settings

from delivery.message import compose
from delivery.replies import Outcome, Reply, Verdict
from delivery.transports.smtp import Destination, LeaseLost, SmtpTransport
from drain.engine import Drain
from drain.leases import Lease
from emails import queue
from emails.outcomes import Result, record
from emails.parcels import Parcel, pack
from emails.scheduling import promote_due
from suppressions.services import blocked_pairs


class Sending:
    """Emails, as drain.engine.Work sees them."""

    kind = "emails"
    held_back = False

    def __init__(self, transport: SmtpTransport, *, sessions: int) -> None:
        self.sessions = sessions
        self._transport = transport
        self._cursor = queue.Cursor()

    def claim(self, limit: int) -> list[Parcel]:
        promote_due()
        parcels = pack(self._cursor.claim(limit))
        refused = _refuse_suppressed(parcels)
        record(refused)
        gone = {result.claim.recipient_id for result in refused}
        return [parcel for parcel in parcels if parcel.key not in gone]

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


def _refuse_suppressed(parcels: Sequence[Parcel]) -> list[Result]:
    """Return a failure for each recipient who was suppressed after the email was accepted."""
    claims = [((parcel.claim.workspace_id, parcel.envelope.recipient), parcel.claim) for parcel in parcels]
    found = blocked_pairs({pair for pair, _ in claims})
    reply = Reply(0, "The address is on the suppression list.")
    outcome = Outcome(Verdict.FAILED, reply, reason="recipient_suppressed")
    return [Result(claim, outcome) for pair, claim in claims if pair in found]


@functools.lru_cache(maxsize=1)
def emails_drain() -> Drain[Parcel, Result]:
    """Return this process's drain of emails."""
    inbox = Destination(host="127.0.0.1", port=settings.INBOX_PORT, ehlo_name=settings.EHLO_NAME)
    transport = SmtpTransport(inbox, on_acceptance=Verdict.DELIVERED)
    return Drain(Sending(transport, sessions=settings.DELIVERY_CONNECTIONS))
