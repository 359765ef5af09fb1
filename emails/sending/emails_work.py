"""Email queue work: claim queue entries, load send jobs, deliver them and record the outcomes."""

import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from django.conf import settings
from django.db import transaction

from core.counters import counters
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply
from core.delivery.transports.interface import LeaseCheck, LeaseLost, Transport
from core.lib.forking import LARGE_BYTES, return_free_memory
from core.lib.worker.event_loop import compute_in_thread, network_loop
from core.lib.worker.failpoints import failpoint
from core.lib.worker.lease_queue import Cursor
from core.lib.worker.once import once
from core.lib.worker.processor import FALLBACK_SECONDS, ClaimResult, QueueProcessor
from core.lib.worker.unused_claims import UnusedClaims
from emails import queue_stats
from emails.pacing.paces import RELEASE_EVERY_SECONDS, release_due
from emails.sending import queue
from emails.sending.assignments import Assignments
from emails.sending.expiry import Expiry, expired_outcome
from emails.sending.jobs import MEMORY_BYTES, SendJob, load_jobs
from emails.sending.outcomes import SendResult, record_results
from emails.sending.outgoing_messages import build_message, is_large
from emails.sending.queue import EmailClaim, WorkspaceShares
from emails.sending.scheduling import EXPIRE_BATCH_SIZE, fail_expired, promote_due
from emails.sending.sending_checks import SUPPRESSED, check_jobs
from emails.sending.simulator_effects import apply_simulator_effects
from emails.sending.transport_status import drained_transports
from emails.sending.transports import configured_transport, find_router
from suppressions.notices import SuppressionNotice

# A workspace with slow destinations leaves a fifth of the sessions to the others.
WORKSPACE_SHARE = 0.8
MEMORY_WAIT_SECONDS = 1.0
# The longest extra wait of a due entry; a busy queue processor claims many times a second.
PROMOTE_EVERY_SECONDS = 0.1
# How soon an expired entry is failed; much less than the 30 s that are promised.
EXPIRE_EVERY_SECONDS = 5.0
# How soon a drained transport gets no new messages.
REFRESH_SECONDS = 2.0

INTERNAL_ERROR = "internal_error"
LEASE_LOST = DeliveryOutcome(
    DeliveryStatus.DEFERRED, Reply(0, "The worker lost its lease before the message was sent."), reason="lease_lost"
)


@dataclass
class _JobInFlight:
    """The resources that a send job uses: a session of its workspace's share, and memory for attachments.

    is_suppressed: its address was suppressed after the job was claimed.
    """

    workspace_id: str
    address: str
    stream: str
    ignores_unsubscribes: bool
    attachment_bytes: int
    is_test: bool
    is_suppressed: bool = False


@dataclass(frozen=True)
class _SendPermit:
    """The lease of a job, as transports check it before an attempt and its final dot.

    Invalid once its address is suppressed or the email has expired.
    reserved: the transports whose daily limits have the message counted.
    """

    lease: LeaseCheck
    job: _JobInFlight
    claim: EmailClaim
    assignments: Assignments
    reserved: list[str]
    expiry: Expiry

    def is_valid(self) -> bool:
        return not self.job.is_suppressed and not self.expiry.is_over() and self.lease.is_valid()

    async def assign(self, transport: str) -> bool:
        if self.expiry.is_over():
            raise LeaseLost
        return await self.assignments.assign_claim(self.claim, transport, reserved=self.reserved)


class EmailQueueWork:
    """The email queue, as a core.lib.worker.processor.QueueWork."""

    kind = "emails"
    # A message in flight may be delivered.
    is_repeatable = False

    def __init__(self, transport: Transport, *, sessions: int) -> None:
        self.sessions = sessions
        self._transport = transport
        self._router = find_router(transport)
        self._assignments = Assignments(self._router)
        self._cursor = Cursor[EmailClaim]()
        self._cap = max(int(sessions * WORKSPACE_SHARE), 1)
        self._in_flight: dict[EmailClaim, _JobInFlight] = {}
        self._is_pacing = False
        self._promoted_at = self._refreshed_at = self._released_at = self._expired_at = float("-inf")
        self.unused: UnusedClaims[EmailClaim] = UnusedClaims(queue.give_back)

    def claim(self, limit: int) -> ClaimResult[SendJob]:
        if time.monotonic() - self._promoted_at >= PROMOTE_EVERY_SECONDS:
            self._promoted_at = time.monotonic()
            promote_due()
        self._fail_expired()
        self._release_paced()
        self._refresh_router()
        with self.unused.claiming() as claims:
            claims.extend(self._cursor.claim(limit, self._shares()))
            if claims:
                failpoint("emails.after_claim")
            loaded = self._load(claims)
            jobs = self._start(loaded)
        has_waiting = len(loaded) < len(claims) or self._shares().is_exhausted
        again = RELEASE_EVERY_SECONDS if self._is_pacing else FALLBACK_SECONDS
        return ClaimResult(jobs, has_leased=bool(claims), has_waiting=has_waiting, again_after=again)

    def _load(self, claims: Sequence[EmailClaim]) -> list[SendJob]:
        """Return the jobs of claims; release those whose attachments do not fit into memory now."""
        if not claims:
            return []
        memory_bytes = MEMORY_BYTES - sum(job.attachment_bytes for job in self._in_flight.values())
        loaded = load_jobs(claims, memory_bytes=memory_bytes)
        if len(loaded) < len(claims):
            unloaded = {*claims} - {job.claim for job in loaded}
            with transaction.atomic():
                counters.add(queue_stats.delayed_changes(queue.release(unloaded, seconds=MEMORY_WAIT_SECONDS)))
        return loaded

    def _shares(self) -> WorkspaceShares:
        in_flight = Counter(claim.workspace_id for claim in self._in_flight)
        last = Counter(claim.workspace_id for claim in self._in_flight if claim.is_last)
        return WorkspaceShares(self._cap, in_flight, last)

    def _start(self, loaded: Sequence[SendJob]) -> list[SendJob]:
        """Return the jobs that may be sent now, each with its transport.

        Jobs are in flight before they are checked: a suppression that is committed later comes with a notice.
        """
        self._in_flight |= {
            job.claim: _JobInFlight(
                job.claim.workspace_id,
                job.address,
                job.stream,
                job.ignores_unsubscribes,
                job.attachment_bytes,
                job.is_test,
            )
            for job in loaded
        }
        jobs: list[SendJob] = []
        try:
            jobs = self._assignments.assign(check_jobs(loaded))
        finally:
            for claim in {job.claim for job in loaded} - {job.claim for job in jobs}:
                del self._in_flight[claim]
        return jobs

    def _release_paced(self) -> None:
        """Make entries ready that the paces of their receivers let leave."""
        if time.monotonic() - self._released_at >= RELEASE_EVERY_SECONDS:
            self._released_at = time.monotonic()
            self._is_pacing = release_due()

    def _fail_expired(self) -> None:
        """Fail expired entries, in the next call too if there are many."""
        if time.monotonic() - self._expired_at < EXPIRE_EVERY_SECONDS:
            return
        if fail_expired() < EXPIRE_BATCH_SIZE:
            self._expired_at = time.monotonic()

    def _refresh_router(self) -> None:
        """Read from time to time which transports the operator drains, and end their sessions."""
        if self._router is None or time.monotonic() - self._refreshed_at < REFRESH_SECONDS:
            return
        self._refreshed_at = time.monotonic()
        for transport in self._router.set_draining(drained_transports()):
            network_loop().call_soon_threadsafe(transport.end_sessions)

    def stop_suppressed(self, notice: SuppressionNotice) -> None:
        """Stop the jobs in flight to addresses that were just suppressed. Called in any thread."""
        for job in list(self._in_flight.values()):
            if not job.is_test and notice.covers(
                job.workspace_id, job.address, stream=job.stream, ignores_unsubscribes=job.ignores_unsubscribes
            ):
                job.is_suppressed = True

    async def perform(self, job: SendJob, lease: LeaseCheck) -> SendResult:
        failpoint("emails.before_hand_over")
        began = time.monotonic()
        in_flight = self._in_flight[job.claim]
        reserved = [job.transport] if self._assignments.is_limited(job.transport) else []
        permit = _SendPermit(lease, in_flight, job.claim, self._assignments, reserved, job.expiry)
        try:
            message = await compute_in_thread(build_message, job) if is_large(job) else build_message(job)
            outcome = _with_receiver(await self._transport.deliver(message, lease=permit), job.address)
        except LeaseLost:
            # Recording is fenced if another worker has the lease by now; otherwise the deferral retries soon.
            outcome = SUPPRESSED if in_flight.is_suppressed else LEASE_LOST
            if job.expiry.is_over():
                outcome = expired_outcome(handed_to=job.claim.handed_to)
        failpoint("emails.after_hand_over")
        return SendResult(job.claim, outcome, tuple(reserved), began)

    def crash_result(self, job: SendJob, error: BaseException) -> SendResult:
        return SendResult(job.claim, internal_error_outcome(error))

    def record(self, results: Sequence[SendResult]) -> None:
        # First, so that results that the database refuses permanently do not stay in memory.
        self._end_jobs(result.claim for result in results)
        failpoint("emails.before_record")
        with transaction.atomic():
            recorded = record_results(results)
            apply_simulator_effects(recorded)
            failpoint("emails.before_record_commit")
        self.unused.add({result.claim for result in results} - {result.claim for result in recorded})
        self._assignments.finish(recorded)
        failpoint("emails.after_record")

    def _end_jobs(self, claims: Iterable[EmailClaim]) -> None:
        ended = [job for claim in claims if (job := self._in_flight.pop(claim, None))]
        is_holding_files = any(job.attachment_bytes for job in self._in_flight.values())
        if sum(job.attachment_bytes for job in ended) > LARGE_BYTES and not is_holding_files:
            return_free_memory()

    def renew(self, claims: Collection[EmailClaim]) -> list[EmailClaim]:
        renewed = queue.renew(claims)
        # Nothing is claimed while slow hosts occupy all sessions.
        self._fail_expired()
        return renewed


def _with_receiver(outcome: DeliveryOutcome, address: str) -> DeliveryOutcome:
    """Return an outcome with the receiver of the mailbox's domain, if the transport does not know the mail host."""
    if outcome.receiver or outcome.status is DeliveryStatus.PARKED or outcome.diversion:
        return outcome
    receiver = settings.RECEIVERS.receiver_of_mailbox_domain(address.rpartition("@")[2].lower())
    return replace(outcome, receiver=receiver.key) if receiver else outcome


def internal_error_outcome(error: BaseException) -> DeliveryOutcome:
    """Return the outcome of a job that raised an unexpected exception."""
    return DeliveryOutcome(
        DeliveryStatus.DEFERRED, Reply(0, f"Internal error: {type(error).__name__}."), INTERNAL_ERROR
    )


@once
def emails_work() -> EmailQueueWork:
    """Return the email queue work of this process."""
    return EmailQueueWork(emails_transport(), sessions=settings.DELIVERY_CONNECTIONS)


@once
def emails_processor() -> QueueProcessor[SendJob, SendResult]:
    """Return this process's queue processor for emails."""
    return QueueProcessor(emails_work())


@once
def emails_transport() -> Transport:
    """Return this process's transport. Its `trouble` explains why nothing can be sent."""
    return configured_transport()
