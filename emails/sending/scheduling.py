"""Schedules: cancel, move, and let go what has become due.

Of a scheduled email the first recipient's queue row, its lead, decides: cancelling, moving and promoting all
begin with a conditional statement on that row, so that one of them wins and the others find it gone.
"""

import logging
from collections.abc import Collection
from datetime import datetime
from typing import Any

from django.db import connection, transaction
from django.db.models.functions import Now

from analytics import counters
from api.errors import NotFound
from api.fields import wire_time
from delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply
from emails import queue_stats
from emails.errors import EmailAlreadySent, EmailNotCancellable, EmailNotScheduled
from emails.events.timeline import NewEvent, add_events
from emails.models import Email, Event, Pending, Recipient
from emails.sending import delivery_health, queue
from emails.sending.outcomes import Result, record
from emails.states import HANDED_OVER, State, sources
from emails.status_rollup import derive_emails
from lib.ids import from_uuid, to_uuid
from lib.worker import wakeup
from lib.worker.failpoints import failpoint
from workspaces.quota import give_quota_back

LEAD = "recipient_id = (SELECT id FROM emails_recipient WHERE email_id = %s AND position = 0) AND stage = 3"
CANCEL = f"DELETE FROM emails_pending WHERE {LEAD}"  # noqa: S608 - constants
MOVE = f"UPDATE emails_pending SET due_at = %s WHERE {LEAD}"  # noqa: S608
# Every row knows the time; the lead alone is promoted by it.
MOVE_ALL = """
UPDATE emails_pending p SET since = %s FROM emails_recipient r
 WHERE r.email_id = %s AND p.recipient_id = r.id AND p.stage = 3
"""
RELEASE = f"UPDATE emails_pending SET stage = 1, due_at = now(), since = now() WHERE {LEAD}"  # noqa: S608
FOLLOW = """
UPDATE emails_pending p SET stage = 1, due_at = now(), since = now() FROM emails_recipient r
 WHERE r.email_id = ANY(%s) AND p.recipient_id = r.id AND p.stage = 3
RETURNING p.workspace_id
"""
log = logging.getLogger("postrider.emails")

Stage = Pending.Stage

GIVEN_UP = DeliveryOutcome(
    DeliveryStatus.FAILED,
    Reply(0, "Three workers ended without a result while they were sending this. It may have been delivered."),
    reason="worker_lost",
)
WORKER_LOST = {
    "code": None,
    "enhancedCode": None,
    "message": "The worker that was sending this ended without a result. It may have been delivered; it is sent again.",
    "reason": "worker_lost",
}


def cancel_email(email: Email) -> dict[str, Any]:
    """Cancel a scheduled email: when this returns, it will never be sent. Cancelling again changes nothing.

    What it cost of the quota is given back within the same month.
    Raises EmailAlreadySent, EmailNotCancellable, and NotFound when retention has deleted it meanwhile.
    """
    with transaction.atomic():
        if _execute(CANCEL, [to_uuid(email.id)]):
            followers, _ = Pending.objects.filter(recipient__email=email).delete()
            _move_recipients([email.id], target=State.CANCELLED, finished_at=Now())
            counters.add(queue_stats.cancelled(email.workspace_id, 1 + followers))
            add_events([NewEvent(Event.Kind.CANCELLED, email.id)])
            derive_emails([email.id])
            give_quota_back(email.workspace_id, units=email.units, taken_at=email.created_at)
            failpoint("emails.before_cancel_commit")
        else:
            _refuse_cancel(email)
    failpoint("emails.after_cancel_commit")
    return {"id": email.id, "status": State.CANCELLED.value}


def reschedule_email(email: Email, *, scheduled_for: datetime | None) -> dict[str, Any]:
    """Move a scheduled email, None for now. Raises EmailNotScheduled once its time has come."""
    with transaction.atomic():
        moved = _release(email) if scheduled_for is None else _move(email, scheduled_for)
        if not moved:
            raise EmailNotScheduled("This email is not scheduled any more.")
    email.refresh_from_db()
    return {
        "id": email.id,
        "status": email.status,
        "createdAt": wire_time(email.created_at),
        "scheduledFor": email.scheduled_for and wire_time(email.scheduled_for),
    }


@transaction.atomic
def promote_due() -> None:
    """Make due rows ready: schedules with all their recipients, retries, and the leases of workers that died.

    The mail of a dead worker may have been delivered; its timeline says so. One that three workers left
    without an outcome is given up (docs/decisions/0005).
    """
    promoted = queue.promote()
    counters.add(queue_stats.due(row.claim.workspace_id for row in promoted if row.was != Stage.LEASED))
    counters.add(queue_stats.later(row.claim.workspace_id for row in promoted if row.stage == Stage.WAITING))
    leads = [row.claim.recipient_id for row in promoted if row.was == Stage.SCHEDULED]
    if leads:
        _queue(list(Recipient.objects.filter(id__in=leads).values_list("email_id", flat=True)))
    lost = [row.claim for row in promoted if row.was == Stage.LEASED and row.stage != Stage.LEASED]
    if lost:
        _tell_lost([held.recipient_id for held in lost])
    given_up = [row.claim for row in promoted if row.stage == Stage.LEASED]
    if given_up:
        log.error("given up: three workers ended with it", extra={"data": {"recipients": len(given_up)}})
        record([Result(held, GIVEN_UP) for held in given_up])
    if promoted:
        failpoint("emails.before_promote_commit")


def _tell_lost(recipient_ids: Collection[str]) -> None:
    lost = Recipient.objects.filter(id__in=recipient_ids)
    add_events([NewEvent(Event.Kind.DEFERRED, one.email_id, one.id, one.address, WORKER_LOST) for one in lost])
    counters.add(delivery_health.outcome(DeliveryStatus.DEFERRED, "worker_lost") for _ in recipient_ids)


def _move(email: Email, scheduled_for: datetime) -> bool:
    moved = _execute(MOVE, [scheduled_for, to_uuid(email.id)])
    if moved:
        _execute(MOVE_ALL, [scheduled_for, to_uuid(email.id)])
        Email.objects.filter(id=email.id).update(scheduled_for=scheduled_for)
        details = {"scheduledFor": wire_time(scheduled_for)}
        add_events([NewEvent(Event.Kind.SCHEDULED, email.id, details=details)])
    return moved


def _release(email: Email) -> bool:
    released = _execute(RELEASE, [to_uuid(email.id)])
    if released:
        Email.objects.filter(id=email.id).update(scheduled_for=Now())
        counters.add(queue_stats.due([email.workspace_id]))
        _queue([email.id])
        transaction.on_commit(lambda: wakeup.ring_soon("emails"))
    return released


def _queue(email_ids: Collection[str]) -> None:
    """Move whole emails from scheduled to queued; their leads are ready already."""
    _follow(email_ids)
    _move_recipients(email_ids, target=State.QUEUED)
    add_events([NewEvent(Event.Kind.QUEUED, email_id) for email_id in email_ids])
    derive_emails(email_ids)


def _follow(email_ids: Collection[str]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(FOLLOW, [[to_uuid(email_id) for email_id in email_ids]])
        counters.add(queue_stats.due(from_uuid(workspace, prefix="ws_") for (workspace,) in cursor.fetchall()))


def _move_recipients(email_ids: Collection[str], *, target: State, **times: Any) -> None:
    Recipient.objects.filter(email__in=email_ids, state__in=sources(target)).update(state=target, **times)


def _refuse_cancel(email: Email) -> None:
    status = Email.objects.filter(id=email.id).values_list("status", flat=True).first()
    if status is None:
        raise NotFound("There is nothing here, or it is not yours.")
    if status == State.CANCELLED:
        return
    if status in HANDED_OVER:
        raise EmailAlreadySent("This email was sent already.")
    raise EmailNotCancellable(f"This email is {status}; only a scheduled one can be cancelled.")


def _execute(sql: str, parameters: list[Any]) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return bool(cursor.rowcount)
