"""Delivery metrics for operators: the queue depth, the age of the oldest due entry, and outcomes of attempts."""

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from core.counters import counters
from core.counters.process_counts import read_process_counts
from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, TlsPolicyKind
from core.delivery.recipients import Diversion
from core.delivery.transports.router import ACCEPTANCES
from core.delivery.transports.transports_file import DEFAULT
from core.lib.sql import run
from core.lib.worker.lease_queue import FIRST
from core.lib.worker.stages import Stage
from emails.sending.queue import QUEUE
from emails.tls_policies.report_counts import report_changes

# A table scan, once per scrape: 0.1 s for a million rows.
QUEUE_DEPTH = "SELECT stage, count(*) FROM emails_pending GROUP BY stage"
# Entries of suspended and deleted workspaces do not count as late.
OLDEST_DUE = f"""
WITH RECURSIVE {QUEUE.ready_groups}
SELECT extract(epoch FROM now() - least(
    (SELECT min(ready.due_at) FROM ready JOIN workspaces_workspace w ON w.id = ready.workspace_id
      WHERE w.suspended_at IS NULL AND w.deletes_at IS NULL),
    (SELECT min(due_at) FROM emails_pending WHERE {QUEUE.is_due})))::float
"""  # noqa: S608 - constants
HAS_LEASED = f"SELECT EXISTS (SELECT FROM emails_pending WHERE stage = {Stage.LEASED} AND due_at > now())"  # noqa: S608
PREFIX = "outcome"
# The prefix of counters by hour, with the transport.
TAKEN = "taken"
# The prefix of the counts of sessions by TLS policy and result.
POLICY_PREFIX = "tls_policy"
POLICY_RESULTS = ("verified", "unverified", "failed")


@dataclass(frozen=True)
class OutcomeCount:
    """The all-time number of attempts with one status and reason.

    reason: empty for a success.
    """

    transport: str
    status: str
    reason: str
    count: int


def outcome_change(status: DeliveryStatus, reason: str, *, transport: str = "") -> counters.CounterChange:
    """Return the counter change of one attempt for `/metrics`. All parts of the key come from small sets."""
    key = f"{PREFIX}.{transport or settings.DELIVERY_TRANSPORT}.{status.value}.{reason}"
    return counters.CounterKey(counters.SERVICE, counters.ALL_TIME, key), 1


def outcome_changes(outcome: DeliveryOutcome, *, now: datetime) -> Iterator[counters.CounterChange]:
    """Yield the counter changes of one attempt, with the transports that failed before its last one."""
    for one in outcome.attempts:
        yield outcome_change(one.status, one.reason, transport=one.transport)
        yield from _policy_changes(one)
        yield from report_changes(one, now=now)
    if outcome.status in ACCEPTANCES and outcome.diversion is not Diversion.CAPTURED:
        yield counters.CounterKey(counters.SERVICE, now, f"{TAKEN}.{outcome.transport or DEFAULT}"), 1


def _policy_changes(outcome: DeliveryOutcome) -> Iterator[counters.CounterChange]:
    """Yield the counter change of an attempt to a domain with a TLS policy; others cost nothing."""
    tls = outcome.tls
    if not tls or tls.policy is TlsPolicyKind.NONE:
        return
    result = "failed" if outcome.reason == FailureReason.TLS else "verified" if tls.verified else "unverified"
    key = f"{POLICY_PREFIX}.{tls.policy}.{result}"
    yield counters.CounterKey(counters.SERVICE, counters.ALL_TIME, key), 1


def read_policy_counts() -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield the all-time number of attempts by TLS policy and result: verified, unverified (testing) or failed."""
    kinds = (TlsPolicyKind.STS, TlsPolicyKind.DANE)
    yield from read_process_counts(POLICY_PREFIX, known=itertools.product(kinds, POLICY_RESULTS))


def sent_today() -> dict[str, int]:
    """Return the number of messages that each transport has taken since midnight UTC."""
    sent: Counter[str] = Counter()
    for _, key, count in counters.read(counters.DAILY_COUNTS, counters.SERVICE, days=1):
        kind, _, transport = key.partition(".")
        if kind == TAKEN:
            sent[transport] += count
    return dict(sent)


def read_outcome_counts() -> Iterator[OutcomeCount]:
    """Yield the all-time outcome counts of this installation; each transport has one of each status from the start."""
    names = settings.TRANSPORTS.transports if settings.TRANSPORTS.is_named else (settings.DELIVERY_TRANSPORT,)
    known = [(name, status.value, "") for name in names for status in DeliveryStatus]
    for (transport, status, reason), count in read_process_counts(PREFIX, known=known):
        yield OutcomeCount(transport, status, reason, count)


def queue_depth() -> dict[str, int]:
    """Return the number of queue entries by stage: waiting, ready, leased, scheduled."""
    counts = dict(run(QUEUE_DEPTH))
    return {stage.name.lower(): counts.get(stage.value, 0) for stage in Stage}


def oldest_due_seconds() -> float:
    """Return the seconds since the oldest due entry became due, or 0 if no entry is due."""
    ((seconds,),) = run(OLDEST_DUE, {"after": FIRST})
    return max(float(seconds or 0), 0.0)


def is_sending() -> bool:
    """Return whether a live worker has leased entries."""
    return bool(run(HAS_LEASED)[0][0])
