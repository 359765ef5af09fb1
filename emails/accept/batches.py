"""Batches: emails that a client pauses, resumes or cancels together while they are scheduled.

A batch is locked by each request that adds emails to it and by each change of its state, so that no email misses one.
"""

from collections import Counter
from collections.abc import Iterable

from django.db import transaction
from django.db.models import F

from core.api.errors import InvalidFields
from core.lib.ids import from_uuid, is_id, to_uuid
from core.lib.sql import run
from core.lib.worker.stages import Stage
from core.workspaces.key_limits import KeyLimits
from core.workspaces.models import Workspace
from emails.accept.insertion import NewEmail
from emails.key_limits import refuse_batch
from emails.models import EmailBatch, QueueEntry
from emails.sending.scheduling import record_cancelled, refund_emails

# Cancelling as many emails took 10 s on two cores that other programs used fully, 1.2 s of it in this process.
MAX_EMAILS = 10_000
State = EmailBatch.State

LEADS = f"""
emails_recipient r JOIN emails_email e ON e.id = r.email_id
 WHERE e.batch_id = %s AND r.position = 0 AND p.recipient_id = r.id AND p.stage = {Stage.SCHEDULED}
"""
# The queue entry that decides when a scheduled email is sent (emails.sending.scheduling) is due at the end of time.
PAUSE = f"UPDATE emails_pending p SET due_at = '9999-01-01'::timestamptz FROM {LEADS}"  # noqa: S608 - constants
# The time of the pause does not count towards the age of an email.
RESUME = f"""
UPDATE emails_pending p SET due_at = e.scheduled_for, since = greatest(e.scheduled_for, now()) FROM {LEADS}
"""  # noqa: S608
CANCEL = f"DELETE FROM emails_pending p USING {LEADS} RETURNING e.id"  # noqa: S608


def create_batch(workspace: Workspace, *, limits: KeyLimits) -> EmailBatch:
    """Create a batch, for test emails if the limits are those of a test key."""
    batch = EmailBatch(workspace=workspace, is_test=limits.is_test)
    batch.save(force_insert=True)
    batch.refresh_from_db()
    return batch


def join_batches(workspace: Workspace, emails: Iterable[NewEmail]) -> None:
    """Add emails to their batches, in the transaction that inserts them. Raises InvalidFields."""
    counts = Counter((email.shared.batch_id, email.shared.is_test) for email in emails)
    for batch_id, is_test, count in sorted((name, is_test, count) for (name, is_test), count in counts.items() if name):
        if not _join(workspace, batch_id, count, is_test=is_test):
            detail = _reason(workspace, batch_id, is_test=is_test)
            raise InvalidFields([{"field": "batchId", "code": "invalid", "detail": detail}])


@transaction.atomic
def pause_batch(batch: EmailBatch, *, limits: KeyLimits) -> None:
    """Pause the scheduled emails of an open batch; none is sent until it is resumed.

    limits: those of the API key.
    Raises NotFound for a batch outside of them, and InvalidFields.
    """
    _set_state(batch, State.PAUSED, sources=[State.OPEN], limits=limits)
    run(PAUSE, [to_uuid(batch.id, prefix="bat_")])


@transaction.atomic
def resume_batch(batch: EmailBatch, *, limits: KeyLimits) -> None:
    """Open a batch; paused emails are sent at their time, or now if it has passed. Cancelled ones stay cancelled.

    Raises the errors of pause_batch.
    """
    _set_state(batch, State.OPEN, sources=[State.PAUSED, State.CANCELLED], limits=limits)
    run(RESUME, [to_uuid(batch.id, prefix="bat_")])


@transaction.atomic
def cancel_batch(batch: EmailBatch, *, limits: KeyLimits) -> None:
    """Cancel the scheduled emails of a batch: once this returns, none of them is ever sent.

    Raises the errors of pause_batch.
    """
    _set_state(batch, State.CANCELLED, sources=[State.OPEN, State.PAUSED], limits=limits)
    ids = [from_uuid(email_id) for (email_id,) in run(CANCEL, [to_uuid(batch.id, prefix="bat_")])]
    if ids:
        followers, _ = QueueEntry.objects.filter(recipient__email__in=ids).delete()
        entries = len(ids) + followers
        record_cancelled(batch.workspace_id, ids, entries=entries, delayed=entries)
        refund_emails(batch.workspace_id, ids)


def _join(workspace: Workspace, batch_id: str, count: int, *, is_test: bool) -> bool:
    batches = EmailBatch.objects.filter(workspace=workspace, is_test=is_test, state=State.OPEN)
    with_room = batches.filter(size__lte=MAX_EMAILS - count)
    return is_id(batch_id, prefix="bat_") and bool(with_room.filter(id=batch_id).update(size=F("size") + count))


def _reason(workspace: Workspace, batch_id: str, *, is_test: bool) -> str:
    """Return the reason why live or test emails cannot be added to a batch."""
    batches = EmailBatch.objects.filter(workspace=workspace)
    batch = batches.filter(id=batch_id).first() if is_id(batch_id, prefix="bat_") else None
    if batch is None or (is_test and not batch.is_test):
        return "This batch does not exist."
    if batch.is_test and not is_test:
        return "This batch is for test emails."
    if batch.state == State.OPEN:
        return f"A batch has at most {MAX_EMAILS:,} emails."
    return f"The batch is {batch.state} and takes no more emails."


def _set_state(
    batch: EmailBatch, state: EmailBatch.State, *, sources: list[EmailBatch.State], limits: KeyLimits
) -> None:
    """Change the state and lock the batch: no email joins it until the transaction ends.

    Raises the errors of pause_batch.
    """
    if not EmailBatch.objects.filter(id=batch.id, state__in=sources).update(state=state):
        raise InvalidFields([{"field": "status", "code": "invalid", "detail": f"The batch cannot be {state} now."}])
    batch.refresh_from_db()
    refuse_batch(limits, batch)
