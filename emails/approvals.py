"""Approval: an email of a key or stream that requires it waits until a person or a key decides (docs/decisions/0390).

Its queue entries are in the stage UNAPPROVED, or SCHEDULED until its time comes, and wait for WaitCause.APPROVAL. One
conditional update of `approval_expires_at` decides between two approvers, the sender who cancels, and the end of
APPROVAL_PERIOD. Locks are taken in the order of emails.sending.outcomes.
"""

import struct
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from core.api.errors import NotFound
from core.counters import counters
from core.lib.coded_texts import CodedText
from core.lib.datetimes import format_datetime
from core.lib.ids import from_uuid, to_uuid
from core.lib.sql import run, run_replanned
from core.lib.tokens import InvalidToken, make_token, read_token
from core.lib.worker import wakeup
from core.lib.worker.stages import Stage
from core.workspaces.audit import AuditAction, current_actor, record_action
from core.workspaces.deletion import existing_workspaces
from core.workspaces.models import Membership, User
from emails import queue_stats
from emails.errors import EmailNotHeld
from emails.models import Email
from emails.sending.scheduling import record_cancelled, refund_emails
from emails.states import WaitCause
from events.kinds import EventKind
from events.models import Event
from events.recording import NewEvent, record_events

BATCH_SIZE = 500
MAX_REASON_LENGTH = 500
LINK_PURPOSE = "approve-email"
# User id, id of the email. The link is of no use after the decision, which comes within APPROVAL_PERIOD.
LINK = struct.Struct(">Q16s")
# Why an email was cancelled, in the event and with its recipients.
REJECTED, LAPSED = "approval_rejected", "approval_expired"
# The lead of a scheduled email is locked first, as by promotion.
WAITING_ENTRIES = f"""
SELECT p.recipient_id, p.workspace_id, p.stage, r.email_id
  FROM emails_pending p JOIN emails_recipient r ON r.id = p.recipient_id
 WHERE r.email_id = ANY(%s) AND p.waits_for = '{WaitCause.APPROVAL}'
 ORDER BY p.stage = {Stage.SCHEDULED} AND r.position = 0 DESC, p.recipient_id FOR UPDATE OF p
"""  # noqa: S608 - constants
# The time for which they waited does not count towards their age.
RELEASE = f"""
WITH waiting AS MATERIALIZED ({WAITING_ENTRIES})
UPDATE emails_pending p
   SET waits_for = NULL,
       stage = CASE p.stage WHEN {Stage.UNAPPROVED} THEN {Stage.READY} ELSE p.stage END,
       since = CASE p.stage WHEN {Stage.UNAPPROVED} THEN now() ELSE p.since END,
       due_at = CASE p.stage WHEN {Stage.UNAPPROVED} THEN now() ELSE p.due_at END
  FROM waiting WHERE p.recipient_id = waiting.recipient_id
RETURNING p.stage
"""  # noqa: S608
DEQUEUE = f"""
WITH waiting AS MATERIALIZED ({WAITING_ENTRIES})
DELETE FROM emails_pending p USING waiting WHERE p.recipient_id = waiting.recipient_id
RETURNING waiting.workspace_id, waiting.email_id
"""  # noqa: S608
DECIDE = """
UPDATE emails_email SET approval_expires_at = NULL
 WHERE id = %s AND approval_expires_at > now() AND finished_at IS NULL RETURNING id
"""
FIND_LAPSED = """
SELECT id FROM emails_email WHERE approval_expires_at <= now() ORDER BY approval_expires_at LIMIT %s
"""
CLEAR_LAPSED = """
WITH locked AS MATERIALIZED (
    SELECT id FROM emails_email WHERE id = ANY(%s) AND approval_expires_at <= now() ORDER BY id FOR NO KEY UPDATE
)
UPDATE emails_email e SET approval_expires_at = NULL FROM locked WHERE e.id = locked.id
"""


class InvalidApprovalLink(Exception):
    """Raised for a link to an email that does not exist any more, or of a person who may not approve it."""


@dataclass(frozen=True)
class ApprovalDecision:
    """The decision about an email that waited for approval.

    decision: `approved`, `rejected`, `expired` without one, or `cancelled` by the sender.
    by: who decided; None unless somebody approved or rejected it.
    reason: of a rejection, as the approver entered it.
    """

    decision: str
    decided_at: datetime
    by: dict[str, str] | None = None
    reason: str | None = None


def approve_email(email: Email, *, person: User | None = None) -> ApprovalDecision:
    """Approve an email: it is sent as it was accepted, at its time or now.

    person: the approver, if identified by a link and not a session or key.
    Raises EmailNotHeld with the decision that was made, if there is one.
    """
    with transaction.atomic():
        stages = [stage for (stage,) in run_replanned(RELEASE, [[to_uuid(email.id)]])]
        _decide(email)
        counters.add(queue_stats.due_changes([email.workspace_id] * stages.count(Stage.READY)))
        _record(email, EventKind.APPROVED, AuditAction.EMAIL_APPROVED, person=person)
        transaction.on_commit(lambda: wakeup.notify_soon("emails"))
    return _decided(email)


def reject_email(email: Email, *, reason: str | None = None, person: User | None = None) -> ApprovalDecision:
    """Reject an email: it is cancelled, and its quota is refunded within the same month.

    reason: shown in the events.
    person: as in approve_email.
    Raises EmailNotHeld with the decision that was made, if there is one.
    """
    with transaction.atomic():
        entries = len(run_replanned(DEQUEUE, [[to_uuid(email.id)]]))
        _decide(email)
        details = {"reason": reason} if reason else {}
        _record(email, EventKind.REJECTED, AuditAction.EMAIL_REJECTED, person=person, details=details)
        record_cancelled(email.workspace_id, [email.id], entries=entries, delayed=entries, reason=REJECTED)
        refund_emails(email.workspace_id, [email.id])
    return _decided(email)


def cancel_lapsed() -> Iterator[None]:
    """Cancel the emails that nobody has decided on in APPROVAL_PERIOD; yield after each transaction."""
    while _cancel_lapsed_batch() == BATCH_SIZE:
        yield


def find_decision(email: Email) -> ApprovalDecision | None:
    """Return the decision about an email; None if there is none, or it never waited for approval."""
    kinds = [EventKind.HELD, EventKind.APPROVED, EventKind.REJECTED, EventKind.CANCELLED]
    events: dict[str, Event] = {event.kind: event for event in Event.objects.filter(email=email.id, kind__in=kinds)}
    for kind in (EventKind.APPROVED, EventKind.REJECTED):
        if event := events.get(kind):
            return ApprovalDecision(kind.value, event.created_at, event.payload.get("by"), event.payload.get("reason"))
    event = events.get(EventKind.CANCELLED) if EventKind.HELD in events else None
    if event is None:
        return None
    return ApprovalDecision("expired" if event.payload.get("reason") == LAPSED else "cancelled", event.created_at)


@transaction.atomic
def _cancel_lapsed_batch() -> int:
    """Cancel a batch; return the number of emails that were looked at.

    Also clears the time of emails that were cancelled or have expired while they waited.
    """
    ids = [email_id for (email_id,) in run(FIND_LAPSED, [BATCH_SIZE])]
    if not ids:
        return 0
    entries: dict[str, list[str]] = {}
    for workspace, email in run_replanned(DEQUEUE, [ids]):
        entries.setdefault(from_uuid(workspace, prefix="ws_"), []).append(from_uuid(email))
    run(CLEAR_LAPSED, [ids])
    for workspace_id, emails in sorted(entries.items()):
        _record_lapsed(workspace_id, emails)
    return len(ids)


def _record_lapsed(workspace_id: str, emails: Sequence[str]) -> None:
    """Record the end of emails. emails: the email of each entry that was deleted."""
    ids: Collection[str] = list(dict.fromkeys(emails))
    record_cancelled(workspace_id, ids, entries=len(emails), delayed=len(emails), reason=LAPSED)
    refund_emails(workspace_id, ids)


def _decide(email: Email) -> None:
    """Take the one decision about an email, whose entries are locked. Raises EmailNotHeld, NotFound."""
    if run(DECIDE, [to_uuid(email.id)]):
        return
    current = Email.objects.filter(id=email.id).only("status", "approval_expires_at").first()
    if current is None:
        raise NotFound
    decision = find_decision(current)
    members = {"decision": describe_decision(decision)} if decision else {}
    raise EmailNotHeld(_explain(current, decision), **members)


def _explain(email: Email, decision: ApprovalDecision | None) -> CodedText:
    if decision is None:
        code = "emails.not_held" if email.approval_expires_at is None else "emails.approval_is_over"
        return CodedText(code, status=[email.status])
    if decision.by is None:
        return CodedText("emails.approval_ended", status=[email.status])
    at = format_datetime(decision.decided_at)
    code = "emails.already_approved" if decision.decision == EventKind.APPROVED else "emails.already_rejected"
    return CodedText(code, who=decision.by["name"], at=at)


def _record(
    email: Email,
    kind: EventKind,
    action: AuditAction,
    *,
    person: User | None,
    details: dict[str, Any] | None = None,
) -> None:
    actor = current_actor(person)
    by = {"kind": actor.kind, "name": actor.name}
    record_events([NewEvent(kind, email.id, details={"by": by, **(details or {})})])
    record_action(email.workspace, action, about=email.id, person=person)


def _decided(email: Email) -> ApprovalDecision:
    """Return the decision that this transaction made, and read the email again."""
    email.refresh_from_db()
    decision = find_decision(email)
    assert decision is not None
    return decision


def describe_decision(decision: ApprovalDecision) -> dict[str, Any]:
    """Return a decision as responses show it."""
    return {
        "decision": decision.decision,
        **({"by": decision.by} if decision.by else {}),
        "decidedAt": format_datetime(decision.decided_at),
        **({"reason": decision.reason} if decision.reason else {}),
    }


def approval_token(email: Email, approver: User) -> str:
    """Return the token of the link by which an approver decides about an email, until it is decided."""
    return make_token(LINK.pack(approver.pk, to_uuid(email.id).bytes), purpose=LINK_PURPOSE)


def read_approval_token(token: str) -> tuple[Email, User]:
    """Return the email of a link, and the approver for whom it was made.

    Raises InvalidApprovalLink, also if the person may not approve emails of the workspace any more.
    """
    try:
        user_id, email_id = LINK.unpack(read_token(token, purpose=LINK_PURPOSE))
    except (InvalidToken, struct.error) as error:
        raise InvalidApprovalLink from error
    email = Email.objects.filter(id=from_uuid(UUID(bytes=email_id)), workspace__in=existing_workspaces()).first()
    approver = approvers_of(email.workspace_id).filter(pk=user_id).first() if email else None
    if email is None or approver is None:
        raise InvalidApprovalLink
    return email, approver


def approvers_of(workspace_id: str) -> QuerySet[User]:
    """Return the people who may approve emails of a workspace: its owners."""
    owned = {"memberships__workspace": workspace_id, "memberships__role": Membership.Role.OWNER}
    return User.objects.filter(is_active=True, **owned)
