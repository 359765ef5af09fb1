"""Diversions of claimed jobs: which messages are captured or redirected, and what then counts.

See docs/decisions/0387 and 0388.
"""

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
from emails.recipient_rules import DIVERSIONS
from emails.sending.jobs import SendJob
from emails.status_rollup import COUNTED_TIMES

LOCK_EMAILS = """
SELECT id, workspace_id, created_at, is_diverted FROM emails_email WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE
"""
# An email of which a message has left stays counted, or may leave: RECIPIENTS diverts all of them, rules some.
MARK_EMAILS = f"""
UPDATE emails_email e SET is_diverted = true
 WHERE e.id = ANY(%(emails)s) AND NOT e.is_diverted AND NOT EXISTS (
       SELECT FROM emails_recipient r
        WHERE r.email_id = e.id AND r.diversion IS NULL
          AND (r.sent_at IS NOT NULL OR r.bounced_at IS NOT NULL OR NOT %(all)s AND r.finished_at IS NULL))
RETURNING e.id, e.workspace_id, e.created_at, e.status, {slices_sql("e")},
          (SELECT count(*) FROM emails_recipient WHERE email_id = e.id AND diversion IS NULL), {COUNTED_TIMES}
"""  # noqa: S608 - constants


def divert_jobs(jobs: Sequence[SendJob]) -> list[SendJob]:
    """Return the jobs with the diversion that RECIPIENTS or the rules demand now; store it with the recipients.

    A job that was diverted before, or whose email was accepted under a diversion, never leaves without one.
    """
    diverted = [_divert(job) for job in jobs]
    marked = [new for new, old in zip(diverted, jobs, strict=True) if new.diversion and new.diversion != old.diversion]
    if marked:
        _mark(marked)
    return diverted


def _divert(job: SendJob) -> SendJob:
    """Return a job with the place of its message; a simulated recipient gets none, so that nothing of it leaves.

    RECIPIENTS is above the rules. A message that was captured before is not redirected by rules.
    """
    setting, treatment = settings.RECIPIENTS, job.treatment
    was_diverted = job.is_diverted or job.diversion
    if not (setting.diversion or treatment or was_diverted):
        return job
    if job.is_test or is_simulated(job.address, domain=settings.SIMULATOR_DOMAIN):
        return replace(job, diversion=None)
    if setting.diversion:
        return replace(job, diversion=setting.diversion, redirect_to=setting.redirect_to)
    is_redirected = treatment is not None and DIVERSIONS[treatment.otherwise] is Diversion.REDIRECTED
    if treatment is None or not is_redirected or (was_diverted and job.diversion is not Diversion.REDIRECTED):
        return replace(job, diversion=Diversion.CAPTURED)
    return replace(job, diversion=Diversion.REDIRECTED, redirect_to=treatment.redirect_to)


@transaction.atomic
def _mark(jobs: Sequence[SendJob]) -> None:
    """Store the diversion of the jobs, and take their emails out of the counters and the quota.

    The recipients are locked before their emails, as by every other change of both.
    """
    marked = run(MARK_DIVERTED, [[to_uuid(job.key) for job in jobs], [str(job.diversion) for job in jobs]])
    emails = [to_uuid(email_id) for email_id in sorted({job.email_id for job in jobs})]
    counted = {row[0]: row[1:3] for row in run(LOCK_EMAILS, [emails]) if not row[3]}
    rows = run(MARK_EMAILS, {"emails": emails, "all": settings.RECIPIENTS.diversion is not None})
    counters.add(change for row in rows for change in _changes(*row))
    units: Counter[tuple[Any, ...]] = Counter()
    is_by_recipient = settings.QUOTA_UNIT == "recipient"
    if is_by_recipient:
        units.update(counted[email] for email, is_new in marked if is_new and email in counted)
    for email, *_, left in (row[:6] for row in rows):
        units[counted[email]] += left if is_by_recipient else 1
    for (workspace, taken_at), count in sorted(units.items()):
        refund_quota(from_uuid(workspace, prefix="ws_"), units=count, taken_at=taken_at)


def _changes(
    _email: Any, workspace: Any, created_at: datetime, status: str, slices: Sequence[Any], _left: int, *times: Any
) -> Iterator[CounterChange]:
    """Yield the changes that move an email from the counters of analytics to those of diverted emails."""
    reached = (f"reached.{name}" for name, time in zip(COUNTED_EVENTS, times, strict=True) if time)
    for key in (f"status.{status}", *reached):
        for is_diverted, by in ((False, -1), (True, 1)):
            name = counter_key(key, is_test=False, is_diverted=is_diverted)
            counted = () if is_diverted else tuple(slices)
            yield CounterKey(from_uuid(workspace, prefix="ws_"), created_at, name, counted), by
