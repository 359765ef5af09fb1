"""Events reported about recipients after sending: bounces, complaints, late deliveries.

For opens and clicks see emails.feedback.opens_and_clicks.
A repeated report is one event. A report proves that a host accepted the message, so a report that arrives before the
worker records the 250 has the same result as the other order: it deletes the queue entry, and the worker finds its
claim gone (docs/decisions/0031). Lock order: QueueEntry → Recipient → Email by id → sorted inserts.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction

from analytics.reputation import counting
from analytics.reputation.counting import ReputationCounter
from core.counters import counters
from core.counters.slices import slices_sql
from core.delivery.bounces.replies import SuppressOn
from core.lib.ids import from_uuid, to_uuid
from core.lib.worker.stages import Stage
from emails import queue_stats
from emails.recipient_moves import RecipientMove, move_recipients
from emails.states import FINISHED_COUNTERS, TRANSITIONS, EmailStatus, RecipientCounter
from emails.status_rollup import roll_up_and_count
from events.kinds import EventKind
from events.recording import NewEvent, record_events
from suppressions.models import Suppression
from suppressions.services import suppress_in_workspaces

LOCK_PENDING = """
SELECT recipient_id, stage FROM emails_pending WHERE recipient_id = ANY(%s) ORDER BY recipient_id FOR UPDATE
"""
LOCK = f"""
SELECT r.id, r.email_id, e.workspace_id, r.address, r.state, coalesce(r.sent_at, now()),
       e.is_test OR r.diversion IS NOT NULL, e.stream, {slices_sql("e")}
  FROM emails_recipient r JOIN emails_email e ON e.id = r.email_id
 WHERE r.id = ANY(%s) ORDER BY r.id FOR NO KEY UPDATE OF r
"""  # noqa: S608 - constants
RECORDED_EVENTS = (
    "SELECT recipient_id, kind, payload FROM emails_event WHERE email_id = ANY(%s) AND recipient_id = ANY(%s)"
)
# The states on the way to a reported one; each is entered if emails.states allows it.
STATUS_PATHS: dict[EventKind, tuple[EmailStatus, ...]] = {
    EventKind.SENT: (EmailStatus.SENT,),
    EventKind.DELIVERED: (EmailStatus.SENT, EmailStatus.DELIVERED),
    EventKind.BOUNCED: (EmailStatus.SENT, EmailStatus.BOUNCED),
    EventKind.FAILED: (EmailStatus.SENT, EmailStatus.FAILED),
}
# Recorded once per recipient, regardless of source and details.
RECORDED_ONCE = frozenset(
    {EventKind.SENT, EventKind.DELIVERED, EventKind.COMPLAINED, EventKind.UNSUBSCRIBED},
)
SUPPRESSIONS = {
    EventKind.COMPLAINED: Suppression.Reason.COMPLAINT,
    EventKind.UNSUBSCRIBED: Suppression.Reason.UNSUBSCRIBE,
}


class RecordResult(Enum):
    """The result of recording a report. UNKNOWN_RECIPIENT: the email was deleted."""

    NEW = "new"
    REPEATED = "repeated"
    UNKNOWN_RECIPIENT = "unknown_recipient"


@dataclass(frozen=True)
class ReportedEvent:
    """An event reported about one recipient.

    details: payload members besides emailId and to; code, enhancedCode, message and reason for a failure.
    is_recipient_fault: the address itself is bad.
    never_suppresses: set for simulator recipients.
    """

    recipient_id: str
    kind: EventKind
    details: dict[str, Any] = field(default_factory=dict)
    is_recipient_fault: bool = False
    never_suppresses: bool = False


@dataclass
class _ReportedRecipient:
    """A locked recipient and its changes.

    is_elsewhere: it did not get the message itself: of a test email, or diverted.
    stage: the stage of its queue entry; None once it is counted as finished.
    """

    id: str
    email_id: str
    workspace_id: str
    address: str
    sent_at: datetime
    is_elsewhere: bool
    stream: str
    slices: tuple[UUID, ...]
    stage: int | None
    before: EmailStatus
    recorded: list[tuple[str, str]] = field(default_factory=list)
    passed: list[EmailStatus] = field(default_factory=list)
    failure: dict[str, Any] = field(default_factory=dict)

    @property
    def state(self) -> EmailStatus:
        return self.passed[-1] if self.passed else self.before


@transaction.atomic
def record_reports(reports: Sequence[ReportedEvent]) -> list[RecordResult]:
    """Record reports; return the result of each.

    Order and repetition do not change the result. One transaction with a fixed number of statements.
    """
    recipients = _lock_recipients(sorted({report.recipient_id for report in reports}))
    events: list[NewEvent] = []
    results: list[RecordResult] = []
    for report in reports:
        recipient = recipients.get(report.recipient_id)
        new_events = list(_apply_report(report, recipient)) if recipient else []
        known = RecordResult.NEW if new_events else RecordResult.REPEATED
        results.append(known if recipient else RecordResult.UNKNOWN_RECIPIENT)
        events += new_events
    new_reports = [report for report, result in zip(reports, results, strict=True) if result is RecordResult.NEW]
    _write(list(recipients.values()), events)
    _count_reputation(new_reports, recipients)
    _suppress(new_reports, recipients)
    return results


def _lock_recipients(recipient_ids: Sequence[str]) -> dict[str, _ReportedRecipient]:
    """Lock the recipients and read the events recorded before."""
    ids = [to_uuid(recipient_id) for recipient_id in recipient_ids]
    with connection.cursor() as cursor:
        cursor.execute(LOCK_PENDING, [ids])
        stages = dict(cursor.fetchall())
        cursor.execute(LOCK, [ids])
        recipients = {row[0]: _recipient(row, stage=stages.get(row[0])) for row in cursor.fetchall()}
        cursor.execute(
            RECORDED_EVENTS, [[to_uuid(recipient.email_id) for recipient in recipients.values()], list(recipients)]
        )
        for recipient_id, kind, payload in cursor.fetchall():
            recipients[recipient_id].recorded.append((kind, _event_key(kind, payload)))
    return {recipient.id: recipient for recipient in recipients.values()}


def _recipient(row: tuple[Any, ...], *, stage: int | None) -> _ReportedRecipient:
    id_, email_id, workspace_id, address, state, sent_at, is_elsewhere, stream, slices = row
    return _ReportedRecipient(
        id=from_uuid(id_),
        email_id=from_uuid(email_id),
        workspace_id=from_uuid(workspace_id, prefix="ws_"),
        address=address,
        sent_at=sent_at,
        is_elsewhere=is_elsewhere,
        stream=stream,
        slices=tuple(slices),
        stage=stage,
        before=EmailStatus(state),
    )


def _event_key(kind: str, payload: dict[str, Any] | str) -> str:
    """Return a key that is equal for repetitions of an event."""
    if kind in RECORDED_ONCE:
        return ""
    content = json.loads(payload) if isinstance(payload, str) else payload
    return json.dumps({name: content[name] for name in content if name not in {"emailId", "to"}}, sort_keys=True)


def _apply_report(report: ReportedEvent, recipient: _ReportedRecipient) -> Iterator[NewEvent]:
    """Move the recipient as far as emails.states allows; yield the new events."""
    key = (report.kind.value, _event_key(report.kind, report.details))
    if key in recipient.recorded:
        return
    moves = [state for state in STATUS_PATHS.get(report.kind, ()) if _try_move(recipient, state)]
    if EmailStatus.SENT in moves and report.kind is not EventKind.SENT:
        recipient.recorded.append((EventKind.SENT.value, ""))
        yield NewEvent(EventKind.SENT, recipient.email_id, recipient.id, recipient.address)
    if moves and "message" in report.details:
        recipient.failure = report.details
    recipient.recorded.append(key)
    yield NewEvent(report.kind, recipient.email_id, recipient.id, recipient.address, report.details)


def _try_move(recipient: _ReportedRecipient, target: EmailStatus) -> bool:
    can_move = recipient.state in TRANSITIONS[target].sources
    if can_move:
        recipient.passed.append(target)
    return can_move


def _write(recipients: Sequence[_ReportedRecipient], events: Sequence[NewEvent]) -> None:
    moved = [recipient for recipient in recipients if recipient.passed]
    if moved:
        move_recipients(
            [RecipientMove(recipient.id, path=recipient.passed, failure=recipient.failure) for recipient in moved]
        )
    record_events(events)
    if moved:
        roll_up_and_count(sorted({recipient.email_id for recipient in moved}))
        counters.add(change for recipient in moved for change in _queue_changes(recipient))


def _queue_changes(recipient: _ReportedRecipient) -> Iterator[counters.CounterChange]:
    """Yield counter changes for queue/stats: from the recipient's earlier state to its current one."""
    if recipient.stage is None:
        yield queue_stats.counter_change(FINISHED_COUNTERS[recipient.before], recipient.workspace_id, by=-1)
    elif recipient.stage in {Stage.WAITING, Stage.SCHEDULED, Stage.HELD, Stage.PACED}:
        yield queue_stats.counter_change(RecipientCounter.DELAYED, recipient.workspace_id, by=-1)
    yield queue_stats.counter_change(FINISHED_COUNTERS[recipient.state], recipient.workspace_id)


def _count_reputation(reports: Sequence[ReportedEvent], recipients: dict[str, _ReportedRecipient]) -> None:
    """Count new reports for the reputation of workspaces; two reports of one bounce count once."""
    counted = {
        (counter, report.recipient_id) for report in reports for counter in _reputation_counters(report, recipients)
    }
    counters.add(
        change for counter, recipient_id in counted for change in _reputation_change(counter, recipients[recipient_id])
    )


def _reputation_counters(
    report: ReportedEvent, recipients: dict[str, _ReportedRecipient]
) -> Iterator[ReputationCounter]:
    if recipients[report.recipient_id].is_elsewhere:
        return
    passed = recipients[report.recipient_id].passed
    if EmailStatus.SENT in passed:
        # The worker that sent the message finds its claim gone and counts nothing.
        yield ReputationCounter.SENT
    is_bad_address = report.is_recipient_fault and not report.never_suppresses
    if (
        EmailStatus.BOUNCED in passed
        and is_bad_address
        and counting.is_address_refusal(report.details.get("reason", ""))
    ):
        yield ReputationCounter.BOUNCED
    if report.kind is EventKind.COMPLAINED:
        yield ReputationCounter.COMPLAINED


def _reputation_change(counter: ReputationCounter, recipient: _ReportedRecipient) -> Iterator[counters.CounterChange]:
    return counting.reputation_change(
        counter,
        workspace_id=recipient.workspace_id,
        address=recipient.address,
        sent_at=recipient.sent_at,
        slices=recipient.slices,
    )


def _suppress(reports: Sequence[ReportedEvent], recipients: dict[str, _ReportedRecipient]) -> None:
    pairs = [(report, recipients[report.recipient_id]) for report in reports]
    suppress_in_workspaces(
        (recipient.workspace_id, recipient.stream, reason, recipient.address)
        for report, recipient in pairs
        if (reason := _suppression_reason(report, recipient))
    )


def _suppression_reason(report: ReportedEvent, recipient: _ReportedRecipient) -> str | None:
    if report.never_suppresses or recipient.is_elsewhere:
        return None
    if report.kind is EventKind.BOUNCED:
        # A bounce after an open, or of a finished recipient, changes no state and is only an event.
        is_due = report.is_recipient_fault or SuppressOn(settings.SUPPRESS_ON) is SuppressOn.EVERY_BOUNCE
        return Suppression.Reason.BOUNCE.value if is_due and EmailStatus.BOUNCED in recipient.passed else None
    reason = SUPPRESSIONS.get(report.kind)
    return reason.value if reason else None
