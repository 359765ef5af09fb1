"""What a check makes of a domain, and when the next one is due: two tables (docs/decisions/0039)."""

import random
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

from domains.models import Domain
from domains.record_checks.results import RecordCheck, RecordStatus, VerificationResult

Status = Domain.Status

# No single unlucky day ends a domain: the DNS must have said no this often, too.
ABSENCES = 3


class VerificationOutcome(Enum):
    """proven: DKIM and SPF are right. refuted: the DNS itself says that one is not. unknown: it gave no answer."""

    PROVEN = "proven"
    REFUTED = "refuted"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Patience:
    """meanwhile: the status while the records are missing. after: how long until the domain has failed."""

    meanwhile: Domain.Status
    after: timedelta


PATIENCE = {
    # Whoever registers a domain may wait a while for the colleague who keeps its DNS.
    Status.PENDING: Patience(Status.PENDING, timedelta(days=7)),
    Status.VERIFIED: Patience(Status.TEMPORARY_FAILURE, timedelta(hours=72)),
    Status.TEMPORARY_FAILURE: Patience(Status.TEMPORARY_FAILURE, timedelta(hours=72)),
    Status.FAILED: Patience(Status.FAILED, timedelta(0)),
}
# How long a domain has been watched, at most; the wait until it is looked at again.
WATCH = (
    (timedelta(minutes=30), timedelta(minutes=1)),
    (timedelta(days=7), timedelta(hours=1)),
    (timedelta.max, timedelta(days=1)),
)
SETTLED = timedelta(days=1)
BROKEN = timedelta(hours=1)
AFTER_TROUBLE = timedelta(hours=1)
# Mail that an old key has signed may be verified days later; after a rotation its record is kept so long.
OLD_KEY_KEPT = timedelta(days=14)
# Domains of one import do not stay together for ever.
SPREAD = 0.1


def outcome_of(sight: VerificationResult) -> VerificationOutcome:
    """DKIM and SPF decide. Of several keys one that is seen is enough."""
    decisive = (_best(list(sight.keys.values())), sight.spf.verdict)
    if all(verdict is RecordStatus.RIGHT for verdict in decisive):
        return VerificationOutcome.PROVEN
    if any(verdict in {RecordStatus.ABSENT, RecordStatus.WRONG} for verdict in decisive):
        return VerificationOutcome.REFUTED
    return VerificationOutcome.UNKNOWN


def next_status(
    status: Domain.Status, outcome: VerificationOutcome, *, missing_for: timedelta, absences: int
) -> Domain.Status:
    """Return the status after a check.

    missing_for, absences: how long and how often in a row, this check included, the DNS itself has said no.
    """
    if outcome is VerificationOutcome.PROVEN:
        return Status.VERIFIED
    if outcome is VerificationOutcome.UNKNOWN:
        return status
    patience = PATIENCE[status]
    is_over = missing_for >= patience.after and absences >= ABSENCES
    return Status.FAILED if is_over else patience.meanwhile


def next_wait(
    status: Domain.Status, outcome: VerificationOutcome, *, watched_for: timedelta, is_waiting: bool
) -> timedelta:
    """Return the time until the next check.

    watched_for: since its owner last acted on the domain. is_waiting: a new key is still to be seen.
    """
    watch = next(wait for limit, wait in WATCH if watched_for < limit)
    wait = {Status.VERIFIED: SETTLED, Status.TEMPORARY_FAILURE: BROKEN}.get(status, watch)
    wait = min(wait, watch) if is_waiting else wait
    wait = min(wait, AFTER_TROUBLE) if outcome is VerificationOutcome.UNKNOWN else wait
    return wait * random.uniform(1 - SPREAD, 1 + SPREAD)  # noqa: S311  # nothing is guarded by it


def _best(findings: list[RecordCheck]) -> RecordStatus:
    """Return the verdict on the keys: unknown ones may yet be right."""
    verdicts = {finding.verdict for finding in findings}
    order = (RecordStatus.RIGHT, RecordStatus.UNKNOWN, RecordStatus.WRONG, RecordStatus.ABSENT)
    return next((verdict for verdict in order if verdict in verdicts), RecordStatus.ABSENT)
