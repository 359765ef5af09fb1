"""The work of a drain: claim, pack, hand over, record."""

import functools
from collections import Counter
from collections.abc import Collection, Sequence

from django.conf import settings

from delivery.replies import Outcome, Reply, Verdict
from delivery.transports.interface import LeaseLost, Transport
from drain.engine import Drain
from drain.leases import Lease
from emails import queue
from emails.outcomes import Result, record
from emails.parcels import Parcel, pack, weigh
from emails.queue import Claim
from emails.scheduling import promote_due
from emails.transports import chosen_transport
from suppressions.services import blocked_pairs

# One workspace's slow mail leaves a fifth of the sessions to the others.
WORKSPACE_SHARE = 0.8
# Bytes of attachments in this process at a time; a composed message takes about three times as much.
MEMORY_BYTES = 32 * 1024 * 1024
MAKE_ROOM_SECONDS = 1.0

SUPPRESSED = Outcome(Verdict.FAILED, Reply(0, "The address is on the suppression list."), reason="recipient_suppressed")
UNREGISTERED = Outcome(
    Verdict.FAILED, Reply(0, "The sending domain is not registered any more."), reason="domain_not_registered"
)
LEASE_LOST = Outcome(
    Verdict.DEFERRED, Reply(0, "The worker lost its lease before the message was sent."), reason="lease_lost"
)


class Sending:
    """Emails, as drain.engine.Work sees them."""

    kind = "emails"

    def __init__(self, transport: Transport, *, sessions: int) -> None:
        self.sessions = sessions
        self.held_back = False
        self._transport = transport
        self._cursor = queue.Cursor()
        self._cap = max(int(sessions * WORKSPACE_SHARE), 1)
        # What this process holds: rows by workspace, bytes of files by recipient.
        self._busy: Counter[str] = Counter()
        self._weights: dict[str, int] = {}

    def claim(self, limit: int) -> list[Parcel]:
        promote_due()
        claims = self._cursor.claim(limit, cap=self._cap, busy=self._busy)
        fitting = self._fitting(claims)
        parcels, refused = _sorted_out(pack(fitting))
        if refused:
            record(refused)
        self._busy.update(parcel.claim.workspace_id for parcel in parcels)
        self.held_back = len(fitting) < len(claims) or max(self._busy.values(), default=0) >= self._cap
        return parcels

    async def perform(self, parcel: Parcel, lease: Lease) -> Result:
        try:
            outcome = await self._transport.deliver(parcel.consignment(), lease=lease)
        except LeaseLost:
            # Fenced when it is recorded, if the lease is indeed lost; tried again soon, if not.
            outcome = LEASE_LOST
        return Result(parcel.claim, outcome)

    def crashed(self, parcel: Parcel, error: BaseException) -> Result:
        text = f"An error of this service: {type(error).__name__}."
        return Result(parcel.claim, Outcome(Verdict.DEFERRED, Reply(0, text), "internal_error"))

    def record(self, results: Sequence[Result]) -> None:
        record(results)
        for result in results:
            self._busy[result.claim.workspace_id] -= 1
            self._weights.pop(result.claim.recipient_id, None)
        self._busy = +self._busy

    def renew(self, parcels: Collection[Parcel]) -> None:
        queue.renew([parcel.claim for parcel in parcels])

    def _fitting(self, claims: Sequence[Claim]) -> list[Claim]:
        """Put back those whose files would not fit into memory now; one is always taken."""
        heavy = weigh(claims)
        fitting, room = [], MEMORY_BYTES - sum(self._weights.values())
        for held in claims:
            weight = heavy.get(held.recipient_id, 0)
            if weight > room and (self._weights or room < MEMORY_BYTES):
                continue
            room -= weight
            fitting.append(held)
        kept = {held.recipient_id for held in fitting}
        self._weights |= {recipient_id: weight for recipient_id, weight in heavy.items() if recipient_id in kept}
        queue.put_back([held for held in claims if held.recipient_id not in kept], seconds=MAKE_ROOM_SECONDS)
        return fitting


def _sorted_out(parcels: Sequence[Parcel]) -> tuple[list[Parcel], list[Result]]:
    """Part what may leave from what may not: suppressed since it was accepted, or its domain is gone."""
    pairs = {parcel.key: (parcel.claim.workspace_id, parcel.recipient.address) for parcel in parcels}
    suppressed = blocked_pairs(set(pairs.values()))
    refused = [
        Result(parcel.claim, SUPPRESSED if pairs[parcel.key] in suppressed else UNREGISTERED)
        for parcel in parcels
        if pairs[parcel.key] in suppressed or parcel.identity is None
    ]
    gone = {result.claim.recipient_id for result in refused}
    return [parcel for parcel in parcels if parcel.key not in gone], refused


@functools.lru_cache(maxsize=1)
def emails_drain() -> Drain[Parcel, Result]:
    """Return this process's drain of emails."""
    return Drain(Sending(chosen_transport(), sessions=settings.DELIVERY_CONNECTIONS))
