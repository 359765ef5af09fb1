"""The domain lifecycle: the status after a check and the time of the next one, as two tables (docs/decisions/0039)."""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from domains.models import Domain
from domains.record_checks.results import RecordCheck, RecordStatus, VerificationResult

DomainStatus = Domain.DomainStatus

# In addition to the time limit, so that one bad day in the DNS does not fail a domain.
MIN_ABSENCES = 3


class VerificationOutcome(Enum):
    """The outcome of a check.

    PASSED: DKIM and SPF are valid.
    FAILED: one is missing or invalid, authoritatively.
    UNKNOWN: a lookup failed.
    """

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class DomainState:
    """The columns of a domain that a check sets by its result."""

    status: Domain.DomainStatus
    verified_at: datetime | None
    missing_since: datetime | None
    absences: int
    check_due_at: datetime
    checking_until: datetime | None = None


@dataclass(frozen=True)
class CheckedDomain:
    """A domain whose check is being recorded: its locked row as it was, the result, and its state after the check.

    number: the number of the check.
    now: the time of the database.
    """

    domain: Domain
    number: int
    result: VerificationResult
    after: DomainState
    now: datetime


@dataclass(frozen=True)
class FailureRule:
    """A rule for missing records.

    meanwhile: the status while records are missing.
    after: how long they may be missing before the domain fails.
    """

    meanwhile: Domain.DomainStatus
    after: timedelta


FAILURE_RULES = {
    # Allows time for another person to publish the records.
    DomainStatus.PENDING: FailureRule(DomainStatus.PENDING, timedelta(days=7)),
    DomainStatus.VERIFIED: FailureRule(DomainStatus.TEMPORARY_FAILURE, timedelta(hours=72)),
    DomainStatus.TEMPORARY_FAILURE: FailureRule(DomainStatus.TEMPORARY_FAILURE, timedelta(hours=72)),
    DomainStatus.FAILED: FailureRule(DomainStatus.FAILED, timedelta(0)),
}
# (age of the watch at most, interval of checks); a watch starts when the owner changes or verifies the domain.
WATCH_INTERVALS = (
    (timedelta(minutes=30), timedelta(minutes=1)),
    (timedelta(days=7), timedelta(hours=1)),
    (timedelta.max, timedelta(days=1)),
)
# Checks of a domain in these statuses do not depend on the age of the watch.
STATUS_INTERVALS = {DomainStatus.VERIFIED: timedelta(days=1), DomainStatus.TEMPORARY_FAILURE: timedelta(hours=1)}
DNS_ERROR_INTERVAL = timedelta(hours=1)
# Messages may be verified days after they were signed, so the record of the old key stays published this long.
OLD_KEY_RETENTION = timedelta(days=14)
# Spreads the checks of domains that were registered together.
INTERVAL_JITTER = 0.1


def decide_outcome(result: VerificationResult) -> VerificationOutcome:
    """Return the outcome of a check. DKIM and SPF decide; of several DKIM keys one valid key is enough."""
    required = (_best_status(result.keys.values()), result.spf.status)
    if all(status is RecordStatus.VALID for status in required):
        return VerificationOutcome.PASSED
    if any(status in {RecordStatus.MISSING, RecordStatus.INVALID} for status in required):
        return VerificationOutcome.FAILED
    return VerificationOutcome.UNKNOWN


def next_status(
    status: Domain.DomainStatus, outcome: VerificationOutcome, *, missing_for: timedelta, absences: int
) -> Domain.DomainStatus:
    """Return the status after a check.

    missing_for, absences: duration and number of consecutive failed checks, including this one.
    """
    if outcome is VerificationOutcome.PASSED:
        return DomainStatus.VERIFIED
    if outcome is VerificationOutcome.UNKNOWN:
        return status
    rule = FAILURE_RULES[status]
    has_failed = missing_for >= rule.after and absences >= MIN_ABSENCES
    return DomainStatus.FAILED if has_failed else rule.meanwhile


def next_interval(
    status: Domain.DomainStatus, outcome: VerificationOutcome, *, watched_for: timedelta, is_waiting: bool
) -> timedelta:
    """Return the time until the next check.

    watched_for: time since the owner last changed or verified the domain.
    is_waiting: a new key is not published yet, or the tracking host or receiving not active.
    """
    watch = next(wait for limit, wait in WATCH_INTERVALS if watched_for < limit)
    wait = STATUS_INTERVALS.get(status, watch)
    wait = min(wait, watch) if is_waiting else wait
    wait = min(wait, DNS_ERROR_INTERVAL) if outcome is VerificationOutcome.UNKNOWN else wait
    return wait * random.uniform(1 - INTERVAL_JITTER, 1 + INTERVAL_JITTER)  # noqa: S311  # not used for security


def _best_status(checks: Iterable[RecordCheck]) -> RecordStatus:
    """Return the best status of several keys; UNKNOWN ranks second, because that key may be valid."""
    statuses = {check.status for check in checks}
    order = (RecordStatus.VALID, RecordStatus.UNKNOWN, RecordStatus.INVALID, RecordStatus.MISSING)
    return next((status for status in order if status in statuses), RecordStatus.MISSING)
