"""The work of a drain: claim, pack, hand over, record."""

import functools
import time
from collections import Counter
from collections.abc import Collection, Container, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.db import transaction

from analytics import counters
from delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply
from delivery.transports.interface import LeaseLost, Transport
from emails import queue_stats
from emails.events.simulator_effects import play
from emails.sending import queue
from emails.sending.jobs import MEMORY_BYTES, SendJob, load_jobs
from emails.sending.outcomes import Result, record
from emails.sending.outgoing_messages import build_message
from emails.sending.queue import Claim
from emails.sending.scheduling import promote_due
from emails.sending.transports import chosen_transport
from lib.worker.failpoints import failpoint
from lib.worker.leases import Lease
from lib.worker.processor import Drain
from suppressions.services import blocked_pairs

# One workspace's slow mail leaves a fifth of the sessions to the others.
WORKSPACE_SHARE = 0.8
MAKE_ROOM_SECONDS = 1.0
# What is due may wait this much longer; a busy drain claims many times a second.
PROMOTE_EVERY_SECONDS = 0.1

SUPPRESSED = DeliveryOutcome(
    DeliveryStatus.FAILED, Reply(0, "The address is on the suppression list."), reason="recipient_suppressed"
)
UNREGISTERED = DeliveryOutcome(
    DeliveryStatus.FAILED, Reply(0, "The sending domain is not registered any more."), reason="domain_not_registered"
)
# Waits without using an attempt: an operator puts the entry of APP_KEYS back, and nothing was wrong with the mail.
UNSIGNABLE = DeliveryOutcome(
    DeliveryStatus.PARKED,
    Reply(0, "The key that signs the sending domain's mail cannot be opened."),
    reason="signing_key_unreadable",
)
LEASE_LOST = DeliveryOutcome(
    DeliveryStatus.DEFERRED, Reply(0, "The worker lost its lease before the message was sent."), reason="lease_lost"
)


@dataclass(frozen=True)
class _Held:
    """What one recipient under way takes: a share of its workspace, and memory for files, in bytes."""

    workspace_id: str
    weight: int


class Sending:
    """Emails, as lib.worker.processor.Work sees them."""

    kind = "emails"

    def __init__(self, transport: Transport, *, sessions: int) -> None:
        self.sessions = sessions
        self.held_back = self.has_found = False
        self._transport = transport
        self._cursor = queue.Cursor()
        self._cap = max(int(sessions * WORKSPACE_SHARE), 1)
        # What this process has under way, by recipient.
        self._held: dict[str, _Held] = {}
        self._promoted_at = float("-inf")

    def claim(self, limit: int) -> list[SendJob]:
        if time.monotonic() - self._promoted_at >= PROMOTE_EVERY_SECONDS:
            self._promoted_at = time.monotonic()
            promote_due()
        busy = Counter(held.workspace_id for held in self._held.values())
        claims = self._cursor.claim(limit, cap=self._cap, busy=busy)
        self.has_found = bool(claims)
        if claims:
            failpoint("emails.after_claim")
        room = MEMORY_BYTES - sum(held.weight for held in self._held.values())
        packed = load_jobs(claims, room=room) if claims else []
        self._put_back(claims, packed)
        parcels, refused = _sorted_out(packed)
        if refused:
            record(refused)
        self._held |= {parcel.key: _Held(parcel.claim.workspace_id, parcel.weight) for parcel in parcels}
        busy.update(parcel.claim.workspace_id for parcel in parcels)
        self.held_back = len(packed) < len(claims) or max(busy.values(), default=0) >= self._cap
        return parcels

    async def perform(self, parcel: SendJob, lease: Lease) -> Result:
        failpoint("emails.before_hand_over")
        try:
            outcome = await self._transport.deliver(build_message(parcel), lease=lease)
        except LeaseLost:
            # Fenced when it is recorded, if the lease is indeed lost; tried again soon, if not.
            outcome = LEASE_LOST
        failpoint("emails.after_hand_over")
        return Result(parcel.claim, outcome)

    def crashed(self, parcel: SendJob, error: BaseException) -> Result:
        return Result(parcel.claim, fault_of_ours(error))

    def record(self, results: Sequence[Result]) -> None:
        # Before the database is asked: what it refuses for good must not stay here.
        for result in results:
            self._held.pop(result.claim.recipient_id, None)
        failpoint("emails.before_record")
        with transaction.atomic():
            play(record(results))
            failpoint("emails.before_record_commit")
        failpoint("emails.after_record")

    def renew(self, parcels: Collection[SendJob]) -> None:
        queue.renew([parcel.claim for parcel in parcels])

    def _put_back(self, claims: Sequence[Claim], packed: Sequence[SendJob]) -> None:
        """Leave what does not fit into memory now to a later claim."""
        kept = {parcel.claim for parcel in packed}
        left = [held for held in claims if held not in kept]
        if left:
            with transaction.atomic():
                counters.add(queue_stats.later(queue.put_back(left, seconds=MAKE_ROOM_SECONDS)))


def fault_of_ours(error: BaseException) -> DeliveryOutcome:
    """Return the outcome of what raised something that nobody foresaw."""
    return DeliveryOutcome(
        DeliveryStatus.DEFERRED, Reply(0, f"An error of this service: {type(error).__name__}."), "internal_error"
    )


def _sorted_out(parcels: Sequence[SendJob]) -> tuple[list[SendJob], list[Result]]:
    """Part what may leave from what may not, or not now."""
    if not parcels:
        return [], []
    suppressed = blocked_pairs({_pair(parcel) for parcel in parcels})
    obstacles = {parcel.key: _obstacle(parcel, suppressed) for parcel in parcels}
    refused = [Result(parcel.claim, outcome) for parcel in parcels if (outcome := obstacles[parcel.key])]
    return [parcel for parcel in parcels if not obstacles[parcel.key]], refused


def _obstacle(parcel: SendJob, suppressed: Container[tuple[str, str]]) -> DeliveryOutcome | None:
    """Return what keeps a recipient from being sent to since he was accepted."""
    if _pair(parcel) in suppressed:
        return SUPPRESSED
    if parcel.identity is None:
        return UNREGISTERED
    return None if parcel.identity.key else UNSIGNABLE


def _pair(parcel: SendJob) -> tuple[str, str]:
    return parcel.claim.workspace_id, parcel.address


@functools.lru_cache(maxsize=1)
def emails_drain() -> Drain[SendJob, Result]:
    """Return this process's drain of emails."""
    return Drain(Sending(emails_transport(), sessions=settings.DELIVERY_CONNECTIONS))


@functools.lru_cache(maxsize=1)
def emails_transport() -> Transport:
    """Return this process's transport; its `trouble` says why nothing can leave."""
    return chosen_transport()
