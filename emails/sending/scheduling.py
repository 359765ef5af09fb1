"""Scheduled emails: cancel, reschedule, and promote them when they are due (docs/decisions/0015); fail expired ones.

The queue entry of a scheduled email's first recipient is its lead. Cancelling, rescheduling and promoting each begin
with a conditional statement on the lead, so that exactly one of them wins.
"""

import logging
from collections import Counter
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Q
from django.db.models.functions import Now

from core.api.errors import InvalidFields, NotFound
from core.counters import counters
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply
from core.lib.coded_texts import CodedText
from core.lib.datetimes import format_datetime
from core.lib.ids import from_uuid, to_uuid
from core.lib.sql import run, run_replanned
from core.lib.worker import wakeup
from core.lib.worker.failpoints import failpoint
from core.lib.worker.leases import LEASE_SECONDS
from core.lib.worker.stages import Stage
from core.workspaces.key_limits import KeyLimits
from core.workspaces.quota import refund_quota
from emails import queue_stats
from emails.errors import EmailAlreadySent, EmailNotCancellable, EmailNotScheduled
from emails.key_limits import refuse_email
from emails.models import Email, QueueEntry, Recipient
from emails.recipient_moves import move_all_recipients
from emails.sending import delivery_health, queue
from emails.sending.expiry import expired_outcome
from emails.sending.outcomes import SendResult, record_results
from emails.sending.queue import EXPIRED_TRANSPORT, IS_UNAPPROVED, QUEUE, EmailClaim
from emails.sending.sending_checks import (
    STOP_TABLES,
    STOPPED_SINCE,
    STOPS,
    STORED_CAUSE,
    is_sending_paused,
    release_resumed,
)
from emails.states import SENT_STATUSES, EmailStatus
from emails.status_rollup import roll_up_and_count
from events.kinds import EventKind
from events.recording import NewEvent, record_events

LEAD = f"""
stage = {Stage.SCHEDULED} AND recipient_id = (SELECT id FROM emails_recipient WHERE email_id = %s AND position = 0)
"""  # noqa: S608 - constants
CANCEL = f"DELETE FROM emails_pending WHERE {LEAD} RETURNING recipient_id"  # noqa: S608
# Entries that wait for approval and, while sending is paused, all without an attempt. Their locks are taken in the
# order of emails.sending.outcomes.
CANCEL_UNATTEMPTED = f"""
WITH unattempted AS (
    SELECT p.recipient_id, p.stage FROM emails_pending p JOIN emails_recipient r ON r.id = p.recipient_id
     WHERE r.email_id = %s AND p.attempts = 0
       AND (p.stage = {Stage.UNAPPROVED} OR p.stage IN ({Stage.READY}, {Stage.WAITING}, {Stage.HELD}, {Stage.PACED})
            AND EXISTS (SELECT FROM emails_hold))
     ORDER BY p.recipient_id FOR UPDATE OF p)
DELETE FROM emails_pending p USING unattempted u WHERE p.recipient_id = u.recipient_id RETURNING u.stage
"""  # noqa: S608
RESCHEDULE = f"UPDATE emails_pending SET due_at = %s WHERE {LEAD} RETURNING recipient_id"  # noqa: S608
# An expiry from a duration counts anew.
NEW_EXPIRY = """
UPDATE emails_email SET expires_at = scheduled_for + make_interval(secs => deliver_within) WHERE id = %s
RETURNING expires_at
"""
NEW_EXPIRY_OF_ENTRIES = """
UPDATE emails_pending p SET expires_at = %s FROM emails_recipient r WHERE r.email_id = %s AND p.recipient_id = r.id
"""
# Every entry stores the time, but only the lead is promoted by it.
RESCHEDULE_ALL = f"""
UPDATE emails_pending p SET since = %s FROM emails_recipient r
 WHERE r.email_id = %s AND p.recipient_id = r.id AND p.stage = {Stage.SCHEDULED}
"""  # noqa: S608
# The stage of a scheduled entry whose time has come.
PROMOTED = f"CASE WHEN {IS_UNAPPROVED} THEN {Stage.UNAPPROVED} ELSE {Stage.READY} END"
SEND_NOW = f"""
UPDATE emails_pending p SET stage = {PROMOTED}, due_at = now(), since = now() WHERE {LEAD} RETURNING stage
"""  # noqa: S608
QUEUE_FOLLOWERS = f"""
UPDATE emails_pending p SET stage = {PROMOTED}, due_at = now(), since = now() FROM emails_recipient r
 WHERE r.email_id = ANY(%s) AND p.recipient_id = r.id AND p.stage = {Stage.SCHEDULED}
RETURNING p.workspace_id, p.stage
"""  # noqa: S608
EXPIRE_BATCH_SIZE = 500
# Entries past their expiry are leased to this process, which records their failure, whatever they wait for: also while
# sending is paused. A worker keeps what it has leased. A scheduled email expires with its lead, whose followers are
# ready then.
EXPIRE = f"""
WITH due AS MATERIALIZED (
    SELECT recipient_id, workspace_id, stage, since, waits_for FROM emails_pending
     WHERE expires_at <= now() AND (stage <> {Stage.LEASED} OR due_at <= now())
       AND (stage <> {Stage.SCHEDULED} OR EXISTS (
            SELECT FROM emails_recipient WHERE id = emails_pending.recipient_id AND position = 0))
     ORDER BY expires_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
), expired AS (
    UPDATE emails_pending p
       SET stage = {Stage.LEASED}, due_at = now() + make_interval(secs => {LEASE_SECONDS}), fence = fence + 1,
           handed_to = CASE WHEN due.stage = {Stage.LEASED} THEN {EXPIRED_TRANSPORT} ELSE p.handed_to END
      FROM due WHERE p.recipient_id = due.recipient_id
    RETURNING {QUEUE.claim_columns}
)
SELECT p.stage, r.email_id, coalesce(r.error_message, ''),
       (SELECT name FROM (VALUES {STOPS}, ({len(STOPPED_SINCE)}, {STORED_CAUSE},
               CASE WHEN p.stage IN ({Stage.WAITING}, {Stage.PACED}) THEN p.since END)) cause (place, name, since)
         WHERE cause.since IS NOT NULL ORDER BY place LIMIT 1), expired.*
  FROM expired
       JOIN due p ON p.recipient_id = expired.recipient_id
       JOIN emails_recipient r ON r.id = expired.recipient_id
       JOIN emails_email e ON e.id = r.email_id
       {STOP_TABLES}
"""  # noqa: S608 - constants
# The stages of entries that emails.queue_stats counts as delayed.
DELAYED = frozenset({Stage.WAITING, Stage.SCHEDULED, Stage.HELD, Stage.PACED, Stage.UNAPPROVED})
log = logging.getLogger("postrider.emails")

GIVEN_UP = DeliveryOutcome(
    DeliveryStatus.FAILED,
    Reply(0, "Three workers ended without a result while sending this message. It may have been delivered."),
    reason="worker_lost",
)
WORKER_LOST = {
    "code": None,
    "enhancedCode": None,
    "message": "The worker ended without a result while sending. The message may have been delivered and is retried.",
    "reason": "worker_lost",
}


def cancel_email(email: Email, *, limits: KeyLimits) -> None:
    """Cancel a scheduled email: once this returns, it is never sent. Cancelling again changes nothing.

    A queued email without any attempt can be cancelled too while it waits for approval, or while sending is paused. The
    quota is refunded within the same month.
    limits: of the API key.
    Raises EmailAlreadySent, EmailNotCancellable, or NotFound if the email is outside of the limits or retention has
    deleted it.
    """
    refuse_email(limits, email)
    with transaction.atomic():
        if stages := _dequeue_scheduled(email) or _dequeue_unattempted(email):
            delayed = len(stages) - stages.count(Stage.READY)
            record_cancelled(email.workspace_id, [email.id], entries=len(stages), delayed=delayed)
            refund_quota(email.workspace_id, units=email.quota_units, taken_at=email.created_at)
            failpoint("emails.before_cancel_commit")
        else:
            _refuse_cancel(email)
    failpoint("emails.after_cancel_commit")


def record_cancelled(
    workspace_id: str, email_ids: Collection[str], *, entries: int, delayed: int, reason: str | None = None
) -> None:
    """Record that emails were cancelled, after their queue entries were deleted.

    entries: the number of these.
    delayed: the number of those that were scheduled or waiting.
    reason: shown in the events and with the recipients; None if the sender cancelled them.
    """
    move_all_recipients(email_ids, target=EmailStatus.CANCELLED, reason=reason)
    counters.add(queue_stats.cancelled_changes(workspace_id, entries, delayed=delayed))
    details = {"reason": reason} if reason else {}
    record_events([NewEvent(EventKind.CANCELLED, email_id, details=details) for email_id in email_ids])
    roll_up_and_count(email_ids)


def refund_emails(workspace_id: str, email_ids: Collection[str]) -> None:
    """Return the quota of cancelled emails that were accepted in the current month."""
    for month, units in _units_by_month(email_ids).items():
        refund_quota(workspace_id, units=units, taken_at=month)


def is_cancellable(email: Email) -> bool:
    """Return whether `cancel_email` may succeed."""
    if email.status == EmailStatus.SCHEDULED:
        return True
    return email.status == EmailStatus.QUEUED and (email.held is not None or is_sending_paused())


def reschedule_email(email: Email, *, scheduled_for: datetime | None, limits: KeyLimits) -> None:
    """Reschedule a scheduled email; None sends it now.

    limits: of the API key.
    Raises NotFound for an email outside of them, EmailNotScheduled once its time has come, and InvalidFields for a time
    after its expiry.
    """
    refuse_email(limits, email)
    _refuse_after_expiry(email, scheduled_for)
    with transaction.atomic():
        moved = _send_now(email) if scheduled_for is None else _reschedule(email, scheduled_for)
        if not moved:
            raise EmailNotScheduled(CodedText("emails.not_scheduled"))
        if email.deliver_within:
            _renew_expiry(email)
    email.refresh_from_db()


@transaction.atomic
def promote_due() -> None:
    """Make due entries ready: schedules with all their recipients, retries, expired leases, and resumed streams.

    A message of a dead worker may have been delivered; an event on its timeline says so. A recipient that three workers
    left without an outcome fails (docs/decisions/0005).
    """
    counters.add(queue_stats.due_changes(release_resumed()))
    promoted = queue.promote()
    counters.add(queue_stats.due_changes(row.claim.workspace_id for row in promoted if row.from_stage != Stage.LEASED))
    counters.add(queue_stats.delayed_changes(row.claim.workspace_id for row in promoted if row.to_stage in DELAYED))
    leads = [row.claim.recipient_id for row in promoted if row.from_stage == Stage.SCHEDULED]
    if leads:
        _queue_emails(list(Recipient.objects.filter(id__in=leads).values_list("email_id", flat=True)))
    lost = [row.claim for row in promoted if row.from_stage == Stage.LEASED and row.to_stage != Stage.LEASED]
    if lost:
        _record_lost_leases([claim.recipient_id for claim in lost])
    given_up = [row.claim for row in promoted if row.to_stage == Stage.LEASED]
    if given_up:
        log.error(
            "recipients failed: three workers ended without a result", extra={"data": {"recipients": len(given_up)}}
        )
        record_results([SendResult(claim, GIVEN_UP) for claim in given_up])
    if promoted:
        failpoint("emails.before_promote_commit")


@transaction.atomic
def fail_expired() -> int:
    """Fail up to EXPIRE_BATCH_SIZE recipients whose emails have expired, and return their number.

    That of a message which a host may have taken is unknown.
    """
    rows = run_replanned(EXPIRE, {"limit": EXPIRE_BATCH_SIZE})
    if not rows:
        return 0
    expired = [(stage, email, error, cause, EmailClaim(*row)) for stage, email, error, cause, *row in rows]
    counters.add(queue_stats.due_changes(claim.workspace_id for stage, *_, claim in expired if stage in DELAYED))
    if scheduled := {from_uuid(email) for stage, email, *_ in expired if stage == Stage.SCHEDULED}:
        _queue_emails(scheduled)
    record_results(
        [
            SendResult(claim, expired_outcome(handed_to=claim.handed_to, cause=cause or "", last_error=error))
            for _, _, error, cause, claim in expired
        ]
    )
    return len(expired)


def _units_by_month(email_ids: Collection[str]) -> dict[datetime, int]:
    """Return the quota units that emails used, by the start of the month (UTC) in which they were accepted."""
    units: Counter[datetime] = Counter()
    rows: Any = (
        Email.objects.filter(id__in=email_ids, is_test=False, is_diverted=False)
        .annotate(units=Count("recipients", filter=Q(recipients__diversion=None)))
        .order_by()
    )
    for accepted_at, recipients in rows.values_list("created_at", "units"):
        month = accepted_at.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        units[month] += recipients if settings.QUOTA_UNIT == "recipient" else 1
    return dict(units)


def _record_lost_leases(recipient_ids: Collection[str]) -> None:
    lost = Recipient.objects.filter(id__in=recipient_ids)
    record_events(
        [
            NewEvent(EventKind.DEFERRED, recipient.email_id, recipient.id, recipient.address, WORKER_LOST)
            for recipient in lost
        ]
    )
    counters.add(delivery_health.outcome_change(DeliveryStatus.DEFERRED, "worker_lost") for _ in recipient_ids)


def _dequeue_scheduled(email: Email) -> list[int]:
    """Delete the queue entries of an email that is still scheduled, and return their stages."""
    if not run(CANCEL, [to_uuid(email.id)]):
        return []
    followers, _ = QueueEntry.objects.filter(recipient__email=email).delete()
    return [Stage.SCHEDULED] * (1 + followers)


def _dequeue_unattempted(email: Email) -> list[int]:
    """Delete the queue entries of an email without any attempt, and return their stages.

    None unless it waits for approval, or sending is paused.
    """
    stages = [stage for (stage,) in run(CANCEL_UNATTEMPTED, [to_uuid(email.id)])]
    if stages and len(stages) < email.recipients.count():
        raise EmailNotCancellable(CodedText("emails.was_attempted"))
    return stages


def _reschedule(email: Email, scheduled_for: datetime) -> bool:
    moved = bool(run(RESCHEDULE, [scheduled_for, to_uuid(email.id)]))
    if moved:
        run(RESCHEDULE_ALL, [scheduled_for, to_uuid(email.id)])
        Email.objects.filter(id=email.id).update(scheduled_for=scheduled_for)
        details = {"scheduledFor": format_datetime(scheduled_for)}
        record_events([NewEvent(EventKind.SCHEDULED, email.id, details=details)])
    return moved


def _refuse_after_expiry(email: Email, scheduled_for: datetime | None) -> None:
    """Raise InvalidFields for a time at which an email with an expiry that does not move has expired."""
    if email.expires_at is None or email.deliver_within:
        return
    if scheduled_for and scheduled_for >= email.expires_at:
        detail = CodedText("emails.scheduled_after_expiry", at=format_datetime(email.expires_at))
        raise InvalidFields([{"field": "scheduledFor", "code": "after_expiry", "detail": detail}])


def _renew_expiry(email: Email) -> None:
    email_id = to_uuid(email.id)
    ((expires_at,),) = run(NEW_EXPIRY, [email_id])
    run(NEW_EXPIRY_OF_ENTRIES, [expires_at, email_id])


def _send_now(email: Email) -> bool:
    stages = [stage for (stage,) in run(SEND_NOW, [to_uuid(email.id)])]
    if stages:
        Email.objects.filter(id=email.id).update(scheduled_for=Now())
        counters.add(queue_stats.due_changes([email.workspace_id] * stages.count(Stage.READY)))
        _queue_emails([email.id])
        transaction.on_commit(lambda: wakeup.notify_soon("emails"))
    return bool(stages)


def _queue_emails(email_ids: Collection[str]) -> None:
    """Move whole emails from scheduled to queued. Their leads are already ready, or wait for approval."""
    followers = run(QUEUE_FOLLOWERS, [[to_uuid(email_id) for email_id in email_ids]])
    counters.add(
        queue_stats.due_changes(
            from_uuid(workspace, prefix="ws_") for workspace, stage in followers if stage == Stage.READY
        )
    )
    move_all_recipients(email_ids, target=EmailStatus.QUEUED)
    record_events([NewEvent(EventKind.QUEUED, email_id) for email_id in email_ids])
    roll_up_and_count(email_ids)


def _refuse_cancel(email: Email) -> None:
    status = Email.objects.filter(id=email.id).values_list("status", flat=True).first()
    if status is None:
        raise NotFound
    if status == EmailStatus.CANCELLED:
        return
    if status in SENT_STATUSES:
        raise EmailAlreadySent(CodedText("emails.already_sent"))
    raise EmailNotCancellable(CodedText("emails.not_cancellable", status=[status]))
