"""Assignments: which named transport gets the last block of a claimed message, stored before it is sent.

One statement for a claim of up to a hundred messages; one for each message that goes to its next transport. Without
named transports there is nothing to store (docs/decisions/0215).
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from core.delivery.bounces.replies import DeliveryOutcome
from core.delivery.recipients import Diversion
from core.delivery.transports.interface import LeaseLost
from core.delivery.transports.router import ACCEPTANCES, TransportRouter
from emails.pacing.database_thread import run_in_database_thread
from emails.sending.jobs import SendJob
from emails.sending.queue import QUEUE, EmailClaim
from emails.sending.transport_status import refund, reserve, send_changes, send_listings

ASSIGN = "handed_to = %(transport)s"


class TransportResult(Protocol):
    """The outcome of a delivery attempt.

    reserved: the transports whose daily limits have a message counted for it.
    """

    @property
    def outcome(self) -> DeliveryOutcome: ...

    @property
    def reserved(self) -> tuple[str, ...]: ...


class Assignments:
    """The assignments of one process. Without a router, as in tests of other transports, there are none."""

    def __init__(self, router: TransportRouter | None) -> None:
        self._router = router if router and router.transports.is_named else None

    def assign(self, jobs: Sequence[SendJob]) -> list[SendJob]:
        """Store the first usable transport of each job's route; return the jobs with it.

        A job without one is offered to all transports of its route when it is performed. A captured one gets none.
        """
        if self._router is None:
            return list(jobs)
        by_transport: dict[str, list[EmailClaim]] = defaultdict(list)
        for job in jobs:
            is_captured = job.diversion is Diversion.CAPTURED
            if not job.claim.handed_to and not is_captured and (name := self._router.first_choice(job.route)):
                by_transport[name].append(job.claim)
        assigned: dict[EmailClaim, str] = {}
        for name, claims in by_transport.items():
            reserved = claims[: self._reserve(name, len(claims))]
            kept = QUEUE.update_leased(reserved, ASSIGN, transport=name) if reserved else []
            assigned |= dict.fromkeys(kept, name)
            self._refund(Counter({name: len(reserved) - len(kept)}))
        return [replace(job, transport=assigned.get(job.claim, "")) for job in jobs]

    async def assign_claim(self, claim: EmailClaim, transport: str, *, reserved: list[str]) -> bool:
        """Store the next transport of a message; see assign_with."""

        def store() -> bool:
            return bool(QUEUE.update_leased([claim], ASSIGN, transport=transport))

        return await self.assign_with(store, transport=transport, reserved=reserved)

    async def assign_with(self, store: Callable[[], bool], *, transport: str, reserved: list[str]) -> bool:
        """Store the next transport of a message; return False if its daily limit is reached. Raises LeaseLost.

        store: returns False if the lease is lost.
        reserved: gets the transport if the message counts for its limit.
        """
        is_assigned = await run_in_database_thread(self._assign_one, store, transport)
        if is_assigned and self.is_limited(transport):
            reserved.append(transport)
        return is_assigned

    def is_limited(self, transport: str) -> bool:
        return bool(self._router and transport and self._router.transports.transports[transport].per_day)

    def finish(self, results: Sequence[TransportResult]) -> None:
        """Return the reserved messages that were certainly not taken; tell the staff of listings and pauses."""
        send_listings(attempt for result in results for attempt in result.outcome.attempts)
        if self._router is None:
            return
        unused: Counter[str] = Counter()
        for result in results:
            is_taken = result.outcome.status in ACCEPTANCES or result.outcome.may_be_delivered
            unused.update(set(result.reserved) - ({result.outcome.transport} if is_taken else set()))
        self._refund(unused)
        send_changes(self._router.take_changes())

    def _assign_one(self, store: Callable[[], bool], transport: str) -> bool:
        if not self._reserve(transport, 1):
            return False
        if store():
            return True
        self._refund(Counter({transport: 1}))
        raise LeaseLost

    def _reserve(self, transport: str, count: int) -> int:
        assert self._router
        limit = self._router.transports.transports[transport].per_day
        if limit is None:
            return count
        granted, seconds = reserve(transport, count=count, limit=limit)
        if granted < count:
            self._router.set_exhausted(transport, seconds=seconds)
        return granted

    def _refund(self, unused: Counter[str]) -> None:
        for name, count in unused.items():
            if count and self.is_limited(name):
                refund(name, count=count)
