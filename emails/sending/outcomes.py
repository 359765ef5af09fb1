"""Delivery outcomes of claimed recipients: recorded in one transaction per batch, guarded by the fence.

Lock order everywhere: QueueEntry → Recipient → Email by id → sorted inserts. A worker that lost its lease finds a
different fence on its entries and changes nothing.
"""

import random
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from datetime import time as time_of_day
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction

from analytics.reputation import counting
from core.counters import counters
from core.counters.acceptances import AcceptedGroup, acceptance_changes
from core.counters.deferrals import deferral_changes
from core.counters.latency import Latency, latency_changes
from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, SuppressOn
from core.delivery.transports.router import ACCEPTANCES, pinned_transport
from core.delivery.transports.simulator import is_simulated
from core.lib.network.public_suffixes import organizational_domain
from core.lib.sql import run_replanned
from core.lib.worker.stages import Stage
from emails import queue_stats
from emails.latencies import TimedRecipient, count_latencies
from emails.models import Email
from emails.pacing.paces import begin_release
from emails.recipient_moves import MovedRecipient, RecipientMove, move_recipients
from emails.sending import delivery_health
from emails.sending.queue import EXPIRED_TRANSPORT, MAX_LOST_CLAIMS, QUEUE, EmailClaim, park, wait_for_pace
from emails.sending.retries import delay_after, max_age, with_jitter
from emails.states import FINISHED_COUNTERS, EmailStatus, RecipientCounter
from emails.status_rollup import roll_up
from events.kinds import NEXT_TRANSPORT, TLS, TRANSPORT, WAITED_FOR, EventKind
from events.recording import NewEvent, record_events
from streams.models import MAIN
from suppressions.models import Suppression
from suppressions.services import suppress_in_workspaces

DEFER = f"""
UPDATE emails_pending p
   SET stage = {Stage.WAITING}, due_at = now() + make_interval(secs => w.seconds), parked = 0,
       pair = NULL, paced_since = NULL, lost = CASE WHEN w.is_outcome THEN 0 ELSE p.lost + 1 END,
       handed_to = CASE WHEN w.is_outcome THEN w.handed_to ELSE {EXPIRED_TRANSPORT} END
  FROM unnest(%s::uuid[], %s::float[], %s::boolean[], %s::text[]) AS w (recipient_id, seconds, is_outcome, handed_to)
 WHERE p.recipient_id = w.recipient_id
"""  # noqa: S608 - constants


@dataclass(frozen=True)
class SendResult:
    """A claim and the outcome of its delivery attempt.

    reserved: the transports whose daily limits have a message counted for it.
    began: when the attempt began, in seconds of time.monotonic(); None if there was none.
    """

    claim: EmailClaim
    outcome: DeliveryOutcome
    reserved: tuple[str, ...] = ()
    began: float | None = None

    @property
    def is_first_attempt(self) -> bool:
        """Whether the attempt is the first one whose outcome is known: a worker that was lost left none."""
        is_first = self.claim.attempt == self.claim.lost + 1 and self.outcome.reason not in INTERNAL_ERRORS
        return is_first and self.began is not None

    def times(self, now: datetime, clock: float) -> Iterator[tuple[Latency, float]]:
        """Yield the latencies that ended, in seconds since the recipient was due.

        clock: time.monotonic() at the time `now`.
        """
        seconds = (now - self.claim.since).total_seconds()
        if self.is_first_attempt and self.began is not None:
            yield Latency.FIRST_ATTEMPT, seconds - (clock - self.began)
        if _is_final(self.outcome.status):
            yield Latency.OUTCOME, seconds


# The statuses that a recipient passes through; a status without any is not final.
PATHS: dict[DeliveryStatus, tuple[EmailStatus, ...]] = {
    DeliveryStatus.SENT: (EmailStatus.SENT,),
    DeliveryStatus.DELIVERED: (EmailStatus.SENT, EmailStatus.DELIVERED),
    DeliveryStatus.BOUNCED: (EmailStatus.BOUNCED,),
    DeliveryStatus.FAILED: (EmailStatus.FAILED,),
    DeliveryStatus.CANCELLED: (EmailStatus.CANCELLED,),
    DeliveryStatus.DEFERRED: (),
    DeliveryStatus.PARKED: (),
}

# Errors inside Postrider rather than replies; after three in a row the recipient fails.
INTERNAL_ERRORS = frozenset({"internal_error"})
# A domain counts as nonexistent after two lookups, some time apart (docs/specification.md, Refusals).
MINIMUM_DELAYS = {"bad_domain_unconfirmed": timedelta(seconds=310)}


# Without a savepoint: callers with an open transaction do not continue after an error.
@transaction.atomic(savepoint=False)
def record_results(results: Sequence[SendResult]) -> list[SendResult]:
    """Record the results whose claims this worker still leases, and return those; ignore the others."""
    clock = time.monotonic()
    locked_at = QUEUE.lock_claimed([result.claim for result in results])
    if not locked_at:
        return []
    # The database's time, the same for every result.
    now = next(iter(locked_at.values()))
    current = [_fail_if_expired(result, now=now) for result in results if result.claim in locked_at]
    parked = {
        result.claim: (_park_seconds(result, now=now), result.outcome.waits_for)
        for result in current
        if result.outcome.status is DeliveryStatus.PARKED and not result.outcome.pair
    }
    if parked:
        counters.add(queue_stats.delayed_changes(park(parked)))
    paced = {
        result.claim: (result.outcome.pair, result.outcome.paced_at_most.total_seconds())
        for result in current
        if result.outcome.status is DeliveryStatus.PARKED and result.outcome.pair
    }
    if paced:
        counters.add(queue_stats.delayed_changes(wait_for_pace(paced)))
        begin_release(pair for pair, _ in paced.values())
    attempted = [result for result in current if result.outcome.status is not DeliveryStatus.PARKED]
    if not attempted:
        return current
    recipients = _update_rows(attempted, now=now)
    record_events([*_events(attempted, recipients)])
    rolled_up = roll_up(sorted({recipient.email_id for recipient in recipients.values()}))
    reputation_changes = _reputation_changes(attempted, recipients, rolled_up.slices, now=now)
    latencies = _latency_changes(attempted, recipients, rolled_up.streams, now=now, clock=clock)
    queue_changes = _queue_changes(attempted, recipients, now=now)
    deferrals = _deferral_changes(attempted, recipients, rolled_up.streams, now=now)
    acceptances = acceptance_changes(_count_accepted(attempted, recipients, rolled_up.domains), at=now)
    counters.add([*rolled_up.changes, *queue_changes, *reputation_changes, *latencies, *deferrals, *acceptances])
    _suppress(attempted, recipients)
    return current


def _fail_if_expired(result: SendResult, *, now: datetime) -> SendResult:
    """Turn a deferral or parking into a failure if the recipient is too old, or after repeated internal errors."""
    claim, outcome = result.claim, result.outcome
    if _is_final(outcome.status):
        return result
    is_too_old = now + _delay(result, now=now) >= claim.since + max_age()
    is_repeated_error = outcome.reason in INTERNAL_ERRORS and claim.lost + 1 >= MAX_LOST_CLAIMS
    if not is_too_old and not is_repeated_error:
        return result
    # An earlier attempt by a named transport is still without an answer.
    is_unknown = claim.handed_to and settings.TRANSPORTS.is_named and not is_repeated_error
    reason = FailureReason.OUTCOME_UNKNOWN if is_unknown else outcome.reason
    return replace(result, outcome=replace(outcome, status=DeliveryStatus.FAILED, reason=reason))


def _delay(result: SendResult, *, now: datetime) -> timedelta:
    if result.outcome.status is DeliveryStatus.PARKED:
        return timedelta(0)
    if result.outcome.reason == FailureReason.DAILY_LIMIT:
        return min(delay_after(result.claim.attempt), _until_midnight(now))
    minimum = MINIMUM_DELAYS.get(result.outcome.reason, with_jitter(result.outcome.retry_after))
    return max(delay_after(result.claim.attempt), minimum)


def _park_seconds(result: SendResult, *, now: datetime) -> float:
    """Return the time until the destination takes messages again, but no longer than the recipient may wait."""
    left = result.claim.since + max_age() - now
    return min(result.outcome.retry_after, left).total_seconds()


def _until_midnight(now: datetime) -> timedelta:
    """Return the time until a random second of the first minute of the next UTC day."""
    midnight = datetime.combine(now.astimezone(UTC).date(), time_of_day.min, UTC) + timedelta(days=1)
    return midnight - now + timedelta(seconds=random.uniform(1, 60))  # noqa: S311 - spreads load, not a secret


def _update_rows(results: Sequence[SendResult], *, now: datetime) -> dict[str, MovedRecipient]:
    """Update or delete the queue entries, update the recipients, and return the recipients by id."""
    waits = [
        (
            result.claim.key,
            _delay(result, now=now).total_seconds(),
            result.outcome.reason not in INTERNAL_ERRORS,
            pinned_transport(result.claim.handed_to, result.outcome),
        )
        for result in results
        if not _is_final(result.outcome.status)
    ]
    if waits:
        run_replanned(DEFER, [[wait[column] for wait in waits] for column in range(4)])
    return move_recipients([_move(result) for result in results])


def _move(result: SendResult) -> RecipientMove:
    claim, outcome = result.claim, result.outcome
    return RecipientMove(
        claim.recipient_id,
        path=PATHS[outcome.status],
        attempt=claim.attempt,
        failure=_failure(outcome),
        provider_id=outcome.provider_id or None,
        transport=outcome.transport or None,
        receiver=outcome.receiver or None,
    )


def _failure(outcome: DeliveryOutcome) -> dict[str, Any]:
    if not outcome.reason:
        return {}
    reply = outcome.reply
    return {
        "code": reply.code or None,
        "enhancedCode": reply.enhanced_code,
        "message": reply.text,
        "reason": outcome.reason,
    }


def _details(outcome: DeliveryOutcome) -> dict[str, Any]:
    """Return the details of an event; events.models shows its transport to the staff, or to all."""
    waited = {WAITED_FOR: outcome.waits_for} if outcome.reason == FailureReason.EXPIRED and outcome.waits_for else {}
    diverted = {outcome.diversion.value: True} if outcome.diversion else {}
    named = {TRANSPORT: outcome.transport} if outcome.transport else {}
    return _failure(outcome) | waited | diverted | named


def _tls(outcome: DeliveryOutcome) -> dict[str, Any]:
    tls = outcome.tls
    return {TLS: {"version": tls.version, "policy": tls.policy, "verified": tls.verified}} if tls else {}


def _events(results: Sequence[SendResult], recipients: Mapping[str, MovedRecipient]) -> Iterator[NewEvent]:
    """Yield the events of each recipient, and one of the workspace if its address is suppressed."""
    suppressed = {result.claim for result in results if result.outcome.reason == "recipient_suppressed"}
    streams = _streams(recipients[claim.recipient_id] for claim in suppressed)
    for result in results:
        recipient = recipients[result.claim.recipient_id]
        ids = recipient.email_id, result.claim.recipient_id, recipient.address
        for failover in result.outcome.failovers:
            details = _details(failover.outcome) | {NEXT_TRANSPORT: failover.next_transport}
            yield NewEvent(EventKind.DEFERRED, *ids, details)
        for name in PATHS[result.outcome.status] or ("deferred",):
            tls = _tls(result.outcome) if name == EventKind.DELIVERED else {}
            yield NewEvent(EventKind(name), *ids, _details(result.outcome) | tls)
        if result.claim in suppressed:
            details = {"emailId": recipient.email_id, "to": recipient.address, "reason": result.outcome.reason}
            if (stream := streams[recipient.email_id]) != MAIN:
                details["stream"] = stream
            yield NewEvent(EventKind.SUPPRESSED, workspace_id=result.claim.workspace_id, details=details)


def _queue_changes(
    results: Sequence[SendResult], recipients: Mapping[str, MovedRecipient], *, now: datetime
) -> Iterator[counters.CounterChange]:
    """Yield counter changes for queue/stats, by the state reached, and for /metrics, by verdict and reason."""
    for result in results:
        state = recipients[result.claim.recipient_id].state
        count = FINISHED_COUNTERS[state] if _is_final(result.outcome.status) else RecipientCounter.DELAYED
        yield queue_stats.counter_change(count, result.claim.workspace_id)
        yield from delivery_health.outcome_changes(result.outcome, now=now)


def _reputation_changes(
    results: Sequence[SendResult],
    recipients: Mapping[str, MovedRecipient],
    slices: Mapping[str, tuple[UUID, ...]],
    *,
    now: datetime,
) -> Iterator[counters.CounterChange]:
    """Yield the reputation counters of live emails, except of diverted messages.

    slices: of these, by id.
    """
    for result in results:
        recipient = recipients[result.claim.recipient_id]
        if recipient.email_id not in slices or result.outcome.diversion:
            continue
        for counter in counting.classify_outcome(result.outcome):
            yield from counting.reputation_change(
                counter,
                workspace_id=result.claim.workspace_id,
                address=recipient.address,
                sent_at=now,
                slices=slices[recipient.email_id],
            )


def _latency_changes(
    results: Sequence[SendResult],
    recipients: Mapping[str, MovedRecipient],
    streams: Mapping[str, str],
    *,
    now: datetime,
    clock: float,
) -> Iterator[counters.CounterChange]:
    """Return the changes of the histograms of live emails.

    streams: of these, by id.
    clock: time.monotonic() at the time `now`.
    """
    timed = (
        TimedRecipient(recipient, result.claim.workspace_id, streams[recipient.email_id], result.times(now, clock))
        for result in results
        if (recipient := recipients[result.claim.recipient_id]).email_id in streams
    )
    return latency_changes(count_latencies(timed), at=now)


def _deferral_changes(
    results: Sequence[SendResult],
    recipients: Mapping[str, MovedRecipient],
    streams: Mapping[str, str],
    *,
    now: datetime,
) -> Iterator[counters.CounterChange]:
    """Yield the counters of recipients that were deferred at their first attempt; the simulator's are not counted.

    streams: those of live emails, by id.
    """
    for result in results:
        if result.outcome.status is not DeliveryStatus.DEFERRED or not result.is_first_attempt:
            continue
        recipient = recipients[result.claim.recipient_id]
        stream = streams.get(recipient.email_id)
        if stream is not None and not is_simulated(recipient.address, domain=settings.SIMULATOR_DOMAIN):
            yield from deferral_changes(result.claim.workspace_id, stream="" if stream == MAIN else stream, at=now)


def _count_accepted(
    results: Sequence[SendResult], recipients: Mapping[str, MovedRecipient], domains: Mapping[str, str]
) -> Counter[AcceptedGroup]:
    """Count the messages that a host accepted by sending domain and organization; the simulator is none.

    A diverted message counts if its mail host is known.
    domains: of all but test emails, by id.
    """
    counts: Counter[AcceptedGroup] = Counter()
    for result in results:
        recipient = recipients[result.claim.recipient_id]
        outcome, domain = result.outcome, domains.get(recipient.email_id)
        is_sent = outcome.status in ACCEPTANCES and (outcome.receiver or not outcome.diversion)
        if domain and is_sent and not is_simulated(recipient.address, domain=settings.SIMULATOR_DOMAIN):
            organization = recipient.receiver or organizational_domain(recipient.address.rpartition("@")[2].lower())
            counts[AcceptedGroup(result.claim.workspace_id, domain, organization)] += 1
    return counts


def _suppress(results: Sequence[SendResult], recipients: Mapping[str, MovedRecipient]) -> None:
    """Suppress the addresses that bounced, as SUPPRESS_ON decides."""
    policy = SuppressOn(settings.SUPPRESS_ON)
    bounced = [
        (result.claim.workspace_id, recipients[result.claim.recipient_id])
        for result in results
        if result.outcome.suppresses(policy)
    ]
    if not bounced:
        return
    streams = _streams(recipient for _, recipient in bounced)
    suppress_in_workspaces(
        (workspace_id, streams[recipient.email_id], Suppression.Reason.BOUNCE.value, recipient.address)
        for workspace_id, recipient in bounced
    )


def _streams(recipients: Iterable[MovedRecipient]) -> dict[str, str]:
    """Return the streams of the recipients' emails by id; no query is needed for none."""
    emails = Email.objects.filter(id__in={recipient.email_id for recipient in recipients})
    return dict(emails.values_list("id", "stream").order_by())


def _is_final(status: DeliveryStatus) -> bool:
    return bool(PATHS[status])
