"""Diversions of claimed jobs: which messages are captured or redirected, and what then counts (docs/decisions/0387)."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction

from core.counters import counters
from core.counters.counters import COUNTED_EVENTS, CounterChange, CounterKey, counter_key
from core.counters.slices import slices_sql
from core.delivery.recipients import Diversion
from core.delivery.transports.simulator import is_simulated
from core.lib.ids import from_uuid, to_uuid
from core.lib.sql import run
from core.workspaces.quota import refund_quota
from emails.recipient_moves import MARK_DIVERTED
from emails.sending.jobs import SendJob
from emails.status_rollup import COUNTED_TIMES

# An email of which a message has left already stays counted.
MARK_EMAILS = f"""
WITH locked AS (
    SELECT id FROM emails_email WHERE id = ANY(%s) AND NOT is_diverted ORDER BY id FOR NO KEY UPDATE
)
UPDATE emails_email e SET is_diverted = true FROM locked
 WHERE e.id = locked.id AND NOT EXISTS (
       SELECT FROM emails_recipient r
        WHERE r.email_id = e.id AND r.diversion IS NULL AND (r.sent_at IS NOT NULL OR r.bounced_at IS NOT NULL))
RETURNING e.workspace_id, e.created_at, e.status, {slices_sql("e")},
          (SELECT count(*) FROM emails_recipient WHERE email_id = e.id), {COUNTED_TIMES}
"""  # noqa: S608 - constants


def divert_jobs(jobs: Sequence[SendJob]) -> list[SendJob]:
    """Return the jobs with the diversion that RECIPIENTS demands now; store it with the recipients.

    A job that was diverted before, or whose email was accepted under a diversion, never leaves without one.
    """
    diverted = [_divert(job) for job in jobs]
    marked = [new for new, old in zip(diverted, jobs, strict=True) if new.diversion and new.diversion != old.diversion]
    if marked:
        _mark(marked)
    return diverted


def _divert(job: SendJob) -> SendJob:
    decided = _diversion(job)
    # A copy reads each field of a job, and few are diverted.
    return job if decided is job.diversion else replace(job, diversion=decided)


def _diversion(job: SendJob) -> Diversion | None:
    """Return where the message of a job goes; a simulated recipient gets none, so that nothing of it leaves."""
    was_diverted = job.is_diverted or job.diversion
    decided = settings.RECIPIENTS.diversion or (Diversion.CAPTURED if was_diverted else None)
    if decided is None or job.is_test or is_simulated(job.address, domain=settings.SIMULATOR_DOMAIN):
        return None
    return decided


@transaction.atomic
def _mark(jobs: Sequence[SendJob]) -> None:
    """Store the diversion of the jobs, and take their emails out of the counters and the quota."""
    run(MARK_DIVERTED, [[to_uuid(job.key) for job in jobs], [str(job.diversion) for job in jobs]])
    rows = run(MARK_EMAILS, [sorted({to_uuid(job.email_id) for job in jobs})])
    counters.add(change for row in rows for change in _changes(*row))
    units: Counter[tuple[str, datetime]] = Counter()
    for workspace, created_at, _, _, recipients, *_ in rows:
        units[from_uuid(workspace, prefix="ws_"), created_at] += recipients if settings.QUOTA_UNIT == "recipient" else 1
    for (workspace_id, taken_at), count in sorted(units.items()):
        refund_quota(workspace_id, units=count, taken_at=taken_at)


def _changes(
    workspace: Any, created_at: datetime, status: str, slices: Sequence[Any], _recipients: int, *times: Any
) -> Iterator[CounterChange]:
    """Yield the changes that move an email from the counters of analytics to those of diverted emails."""
    reached = (f"reached.{name}" for name, time in zip(COUNTED_EVENTS, times, strict=True) if time)
    for key in (f"status.{status}", *reached):
        for is_diverted, by in ((False, -1), (True, 1)):
            name = counter_key(key, is_test=False, is_diverted=is_diverted)
            counted = () if is_diverted else tuple(slices)
            yield CounterKey(from_uuid(workspace, prefix="ws_"), created_at, name, counted), by
