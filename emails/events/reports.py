"""Write down what was told about recipients after their mail had left: bounces, complaints, late deliveries.

Opens and clicks are emails.events.opens_and_clicks.
What was told twice is one event. A report proves that some host had taken the mail, so one that comes before
the worker has written down its 250 ends as the other order would; the queue row goes with it, and the
worker finds its claim gone (docs/decisions/0031). Lock order: Pending → Recipient → Email by id → sorted inserts.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import connection, transaction

from analytics import counters
from delivery.bounces.replies import SuppressOn
from emails import queue_stats
from emails.events.timeline import NewEvent, add_events
from emails.models import Event, Pending
from emails.states import State, sources
from emails.status_rollup import derive_emails
from emails.upkeep import reputation_counters
from emails.upkeep.reputation_counters import Rated
from lib.ids import from_uuid, to_uuid
from suppressions.models import Suppression
from suppressions.services import suppress_everywhere

LOCK_PENDING = """
SELECT recipient_id, stage FROM emails_pending WHERE recipient_id = ANY(%s) ORDER BY recipient_id FOR UPDATE
"""
LOCK = """
SELECT r.id, r.email_id, e.workspace_id, r.address, r.state, coalesce(r.sent_at, now())
  FROM emails_recipient r JOIN emails_email e ON e.id = r.email_id
 WHERE r.id = ANY(%s) ORDER BY r.id FOR NO KEY UPDATE OF r
"""
TOLD = "SELECT recipient_id, kind, payload FROM emails_event WHERE email_id = ANY(%s) AND recipient_id = ANY(%s)"
FINISH = "DELETE FROM emails_pending WHERE recipient_id = ANY(%s)"
APPLY = """
UPDATE emails_recipient r
   SET state = v.state,
       sent_at = CASE WHEN v.passed && '{sent,delivered,bounced}' THEN coalesce(r.sent_at, now()) ELSE r.sent_at END,
       delivered_at = CASE WHEN v.passed && '{delivered}' THEN coalesce(r.delivered_at, now()) ELSE r.delivered_at END,
       finished_at = coalesce(r.finished_at, now()),
       bounced_at = CASE WHEN v.passed && '{bounced}' THEN coalesce(r.bounced_at, now()) ELSE r.bounced_at END,
       replied_at = CASE WHEN v.message IS NULL THEN r.replied_at ELSE now() END,
       reply_code = coalesce(v.code, r.reply_code),
       enhanced_code = CASE WHEN v.message IS NULL THEN r.enhanced_code ELSE v.enhanced_code END,
       error_message = coalesce(v.message, r.error_message),
       reason = coalesce(v.reason, r.reason)
  FROM json_to_recordset(%s) AS v (id uuid, state text, passed text[], code smallint, enhanced_code text, message text,
       reason text)
 WHERE r.id = v.id
"""
# The states on the way to what was told; each is passed where the table allows it.
WAYS: dict[Event.Kind, tuple[State, ...]] = {
    Event.Kind.SENT: (State.SENT,),
    Event.Kind.DELIVERED: (State.SENT, State.DELIVERED),
    Event.Kind.BOUNCED: (State.SENT, State.BOUNCED),
    Event.Kind.FAILED: (State.SENT, State.FAILED),
}
# Told once, whoever tells it and however it is put.
ONCE = frozenset(
    {Event.Kind.SENT, Event.Kind.DELIVERED, Event.Kind.COMPLAINED, Event.Kind.UNSUBSCRIBED},
)
SUPPRESSIONS = {
    Event.Kind.COMPLAINED: Suppression.Reason.COMPLAINT,
    Event.Kind.UNSUBSCRIBED: Suppression.Reason.UNSUBSCRIBE,
}


@dataclass(frozen=True)
class Reported:
    """One thing told about one recipient.

    details: what the event's payload adds to emailId and to; code, enhancedCode, message and reason where it
    tells of a failure. is_recipient_fault: the address itself is no good. never_suppresses: for the simulator's own.
    """

    recipient_id: str
    kind: Event.Kind
    details: dict[str, Any] = field(default_factory=dict)
    is_recipient_fault: bool = False
    never_suppresses: bool = False


@dataclass
class _Recipient:
    """A locked row and what becomes of it. stage: where the queue has it; then nobody has counted it as finished."""

    id: str
    email_id: str
    workspace_id: str
    address: str
    left_at: datetime
    stage: int | None
    before: State
    state: State
    told: list[tuple[str, str]] = field(default_factory=list)
    passed: list[State] = field(default_factory=list)
    failure: dict[str, Any] = field(default_factory=dict)


@transaction.atomic
def record_reports(reports: Sequence[Reported]) -> list[bool | None]:
    """Record what was told; return for each whether it was news, None where the recipient is gone.

    Any order and any repetition end the same. One transaction, a fixed number of statements.
    """
    recipients = _locked(sorted({report.recipient_id for report in reports}))
    events: list[NewEvent] = []
    news: list[bool | None] = []
    for report in reports:
        recipient = recipients.get(report.recipient_id)
        told = list(_told(report, recipient)) if recipient else None
        news.append(told is not None and bool(told) if recipient else None)
        events += told or []
    told_now = [report for report, is_news in zip(reports, news, strict=True) if is_news]
    _write(list(recipients.values()), events)
    _rate(told_now, recipients)
    _suppress(told_now, recipients)
    return news


def _locked(recipient_ids: Sequence[str]) -> dict[str, _Recipient]:
    """Lock the rows and read what was told about them before."""
    ids = [to_uuid(recipient_id) for recipient_id in recipient_ids]
    with connection.cursor() as cursor:
        cursor.execute(LOCK_PENDING, [ids])
        stages = dict(cursor.fetchall())
        cursor.execute(LOCK, [ids])
        found = {row[0]: _recipient(row, stage=stages.get(row[0])) for row in cursor.fetchall()}
        cursor.execute(TOLD, [[to_uuid(recipient.email_id) for recipient in found.values()], list(found)])
        for recipient_id, kind, payload in cursor.fetchall():
            found[recipient_id].told.append((kind, _key(kind, payload)))
    return {recipient.id: recipient for recipient in found.values()}


def _recipient(row: tuple[Any, ...], *, stage: int | None) -> _Recipient:
    id_, email_id, workspace_id, address, state, left_at = row
    return _Recipient(
        id=from_uuid(id_),
        email_id=from_uuid(email_id),
        workspace_id=from_uuid(workspace_id, prefix="ws_"),
        address=address,
        left_at=left_at,
        stage=stage,
        before=State(state),
        state=State(state),
    )


def _key(kind: str, payload: dict[str, Any] | str) -> str:
    """Return what two events that tell the same have in common."""
    if kind in ONCE:
        return ""
    content = json.loads(payload) if isinstance(payload, str) else payload
    return json.dumps({name: content[name] for name in content if name not in {"emailId", "to"}}, sort_keys=True)


def _told(report: Reported, recipient: _Recipient) -> Iterator[NewEvent]:
    """Move the recipient as far as the table allows; yield the events of what is new."""
    key = (report.kind.value, _key(report.kind, report.details))
    if key in recipient.told:
        return
    moves = [state for state in WAYS.get(report.kind, ()) if _move(recipient, state)]
    if State.SENT in moves and report.kind is not Event.Kind.SENT:
        recipient.told.append((Event.Kind.SENT.value, ""))
        yield NewEvent(Event.Kind.SENT, recipient.email_id, recipient.id, recipient.address)
    if moves and "message" in report.details:
        recipient.failure = report.details
    recipient.told.append(key)
    yield NewEvent(report.kind, recipient.email_id, recipient.id, recipient.address, report.details)


def _move(recipient: _Recipient, target: State) -> bool:
    if recipient.state.value not in sources(target):
        return False
    recipient.state = target
    recipient.passed.append(target)
    return True


def _write(recipients: Sequence[_Recipient], events: Sequence[NewEvent]) -> None:
    moved = [recipient for recipient in recipients if recipient.passed]
    if moved:
        with connection.cursor() as cursor:
            cursor.execute(FINISH, [[to_uuid(recipient.id) for recipient in moved]])
            cursor.execute(APPLY, [json.dumps([_row(recipient) for recipient in moved])])
    add_events(events)
    if moved:
        derive_emails(sorted({recipient.email_id for recipient in moved}))
        counters.add(change for recipient in moved for change in _counted(recipient))


def _row(recipient: _Recipient) -> dict[str, Any]:
    failure = recipient.failure
    return {
        "id": str(to_uuid(recipient.id)),
        "state": recipient.state.value,
        "passed": [state.value for state in recipient.passed],
        "code": failure.get("code"),
        "enhanced_code": failure.get("enhancedCode"),
        "message": failure.get("message"),
        "reason": failure.get("reason"),
    }


def _counted(recipient: _Recipient) -> Iterator[queue_stats.Change]:
    """Count for queue/stats what the recipient is now, and no more what it was."""
    if recipient.stage is None:
        yield queue_stats.change(queue_stats.finished(recipient.before), recipient.workspace_id, by=-1)
    elif recipient.stage in {Pending.Stage.WAITING, Pending.Stage.SCHEDULED}:
        yield queue_stats.change(queue_stats.Count.DELAYED, recipient.workspace_id, by=-1)
    yield queue_stats.change(queue_stats.finished(recipient.state), recipient.workspace_id)


def _rate(reports: Sequence[Reported], recipients: dict[str, _Recipient]) -> None:
    """Count for the workspace's reputation what is news; two reports of one bounce are one."""
    marks = {(what, report.recipient_id) for report in reports for what in _marks(report, recipients)}
    counters.add(change for what, recipient_id in marks for change in _rated(what, recipients[recipient_id]))


def _marks(report: Reported, recipients: dict[str, _Recipient]) -> Iterator[Rated]:
    passed = recipients[report.recipient_id].passed
    if State.SENT in passed:
        # The worker that handed it over finds its claim gone, and counts nothing.
        yield Rated.SENT
    is_bad_address = report.is_recipient_fault and not report.never_suppresses
    if (
        State.BOUNCED in passed
        and is_bad_address
        and reputation_counters.blames_address(report.details.get("reason", ""))
    ):
        yield Rated.BOUNCED
    if report.kind is Event.Kind.COMPLAINED:
        yield Rated.COMPLAINED


def _rated(what: Rated, recipient: _Recipient) -> Iterator[queue_stats.Change]:
    return reputation_counters.change(
        what, workspace_id=recipient.workspace_id, address=recipient.address, left_at=recipient.left_at
    )


def _suppress(reports: Sequence[Reported], recipients: dict[str, _Recipient]) -> None:
    told = [(report, recipients[report.recipient_id]) for report in reports]
    suppress_everywhere(
        (recipient.workspace_id, reason, recipient.address)
        for report, recipient in told
        if (reason := _suppression(report, recipient))
    )


def _suppression(report: Reported, recipient: _Recipient) -> str | None:
    if report.never_suppresses:
        return None
    if report.kind is Event.Kind.BOUNCED:
        # A bounce that came after an open, or on a recipient that was finished, moved nothing and is an event only.
        is_due = report.is_recipient_fault or SuppressOn(settings.SUPPRESS_ON) is SuppressOn.EVERY_BOUNCE
        return Suppression.Reason.BOUNCE.value if is_due and State.BOUNCED in recipient.passed else None
    reason = SUPPRESSIONS.get(report.kind)
    return reason.value if reason else None
