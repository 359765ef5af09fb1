"""Sending checks: whether a queue entry may be sent now, and what it waits for if not (docs/decisions/0284).

Two of the causes end with a command or a page of the staff, and are here as well: the pause of all sending after a
database was restored (docs/decisions/0060, 0092), and the streams that are paused (docs/decisions/0184). A held entry
of such a stream is neither claimed nor promoted, so a million of them cost nothing until they are released.
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.conf import settings
from django.db import transaction

from core.counters import counters
from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply
from core.lib.coded_texts import CodedText
from core.lib.datetimes import format_datetime
from core.lib.ids import from_uuid, to_uuid
from core.lib.sql import run, run_replanned
from core.lib.worker.stages import Stage
from core.workspaces.recipients.caps import Exceeding
from emails import queue_stats
from emails.models import Email, EmailBatch, PastSendingPause, SendingPause
from emails.pacing.paces import read_wait
from emails.recipient_caps import CountedRecipient, count_recipients
from emails.recipient_rules import is_refused, leaves_to
from emails.sending.diversion import divert_jobs
from emails.sending.expiry import expired_outcome
from emails.sending.jobs import SendJob
from emails.sending.outcomes import SendResult, record_results
from emails.sending.queue import FORGET_UNASSIGNED, QUEUE
from emails.sending.retries import max_age
from emails.states import WaitCause
from events.kinds import EventKind
from events.recording import NewEvent, record_events
from streams.models import NORMAL_RANK, Stream
from suppressions.services import Sending, find_suppressed_sendings

# What ends a wait.
DETAILS = {
    WaitCause.APPROVAL: "emails.waits_for_approval",
    WaitCause.SENDING_PAUSED: "emails.waits_for_release",
    WaitCause.WORKSPACE_SUSPENDED: "emails.waits_for_suspension",
    WaitCause.WORKSPACE_DELETED: "emails.waits_for_restoration",
    WaitCause.BATCH_PAUSED: "emails.waits_for_batch",
    WaitCause.STREAM_PAUSED: "emails.waits_for_stream",
    WaitCause.MEMORY: "emails.waits_for_memory",
    WaitCause.SIGNING_KEY: "emails.waits_for_key",
    WaitCause.TRANSPORT: "emails.waits_for_transport",
    WaitCause.DAILY_LIMIT: "emails.waits_for_midnight",
    WaitCause.RECEIVER_PACE: "emails.waits_for_receiver",
    WaitCause.DESTINATION: "emails.waits_for_destination",
    WaitCause.RETRY: "emails.waits_for_retry",
}
# The same with a route that has a limit for such waits.
LIMITED_DETAILS = {
    "emails.waits_for_rate": "emails.waits_for_rate_at_most",
    "emails.waits_for_receiver": "emails.waits_for_receiver_at_most",
}
# SQL with the time since which entries are not sent, null if they are. The claim of emails.sending.queue asks the three
# after the approval, for which entries are in a stage, of all entries; promotion asks for the batch by its due_at, and
# check_jobs for the stream.
STOPPED_SINCE = {
    WaitCause.APPROVAL: f"CASE WHEN p.stage = {Stage.UNAPPROVED} THEN p.since END",
    WaitCause.SENDING_PAUSED: "(SELECT since FROM emails_hold)",
    WaitCause.WORKSPACE_SUSPENDED: "w.suspended_at",
    WaitCause.WORKSPACE_DELETED: "CASE WHEN w.deletes_at IS NOT NULL THEN p.since END",
    WaitCause.BATCH_PAUSED: f"""
        CASE WHEN p.stage = {Stage.SCHEDULED} AND b.state = '{EmailBatch.State.PAUSED}' THEN p.since END""",
    WaitCause.STREAM_PAUSED: "s.paused_at",
}
STOPS = ", ".join(f"({place}, '{cause}', {since})" for place, (cause, since) in enumerate(STOPPED_SINCE.items()))
# The tables of STOPS, joined to the entry p and its email e.
STOP_TABLES = """
       JOIN workspaces_workspace w ON w.id = p.workspace_id
       LEFT JOIN emails_emailbatch b ON b.id = e.batch_id
       LEFT JOIN streams_stream s ON s.workspace_id = p.workspace_id AND s.slug = e.stream"""
# SQL with the cause in an entry's row.
STORED_CAUSE = f"""
    coalesce(p.waits_for, CASE r.reason WHEN '{FailureReason.DAILY_LIMIT}' THEN '{WaitCause.DAILY_LIMIT}'
                          ELSE '{WaitCause.RETRY}' END)"""
# The first cause of any recipient. An entry waits for nothing before its scheduled time, or while it is being sent.
WAIT = f"""
SELECT cause.name, greatest(cause.since, p.since, r.replied_at), p.due_at, p.pair, p.since
  FROM emails_recipient r
       JOIN emails_email e ON e.id = r.email_id
       JOIN emails_pending p ON p.recipient_id = r.id
       {STOP_TABLES}
       CROSS JOIN LATERAL (VALUES {STOPS}, ({len(STOPPED_SINCE)}, {STORED_CAUSE},
           CASE WHEN p.stage IN ({Stage.WAITING}, {Stage.PACED}) AND p.due_at > now() THEN p.since END))
           cause (place, name, since)
 WHERE r.email_id = %s AND p.since <= now() AND (p.stage <> {Stage.LEASED} OR p.due_at <= now())
   AND cause.since IS NOT NULL
 ORDER BY cause.place, 2 LIMIT 1
"""  # noqa: S608 - constants

# The most entries of one statement.
BATCH_SIZE = 1000
# The rank is the number of the stream, so that its entries are found without reading emails.
HOLD = f"stage = {Stage.HELD}, due_at = now(), rank = %(number)s, parked = 0"
# Locks the entries that would be claimed next, and skips those that other workers hold.
HOLD_NEXT = f"""
WITH next AS (
    SELECT recipient_id FROM emails_pending
     WHERE stage = {Stage.READY} AND workspace_id = %(workspace)s AND rank = %(rank)s
     ORDER BY due_at LIMIT {BATCH_SIZE} FOR UPDATE SKIP LOCKED
)
UPDATE emails_pending p SET {HOLD} WHERE p.recipient_id IN (
    SELECT r.id FROM next
      JOIN emails_recipient r ON r.id = next.recipient_id JOIN emails_email e ON e.id = r.email_id
     WHERE e.stream = %(stream)s)
RETURNING p.workspace_id
"""  # noqa: S608 - constants
RANKS = " ".join(f"WHEN '{priority}' THEN {rank}" for rank, priority in enumerate(Stream.Priority.values))
# Finds the streams with held entries by a loose index scan, then the entries of those that are not paused any more. The
# time that an entry was held does not count towards its age.
RELEASE = f"""
WITH RECURSIVE held AS (
    (SELECT workspace_id, rank FROM emails_pending
      WHERE stage = {Stage.HELD} ORDER BY workspace_id, rank LIMIT 1)
    UNION ALL
    SELECT further.* FROM held CROSS JOIN LATERAL (
        SELECT workspace_id, rank FROM emails_pending
         WHERE stage = {Stage.HELD} AND (workspace_id, rank) > (held.workspace_id, held.rank)
         ORDER BY workspace_id, rank LIMIT 1) further
), released AS (
    SELECT entry.recipient_id, CASE s.priority {RANKS} ELSE {NORMAL_RANK} END AS rank
      FROM held LEFT JOIN streams_stream s ON s.workspace_id = held.workspace_id AND s.number = held.rank
           CROSS JOIN LATERAL (
               SELECT recipient_id FROM emails_pending
                WHERE stage = {Stage.HELD} AND workspace_id = held.workspace_id AND rank = held.rank
                ORDER BY due_at LIMIT {BATCH_SIZE} FOR UPDATE SKIP LOCKED) entry
     WHERE s.paused_at IS NULL LIMIT {BATCH_SIZE}
)
UPDATE emails_pending p
   SET stage = {Stage.READY}, since = p.since + (now() - p.due_at), due_at = now(), rank = released.rank
  FROM released WHERE p.recipient_id = released.recipient_id
RETURNING p.workspace_id
"""  # noqa: S608 - constants

SUPPRESSED = DeliveryOutcome(
    DeliveryStatus.FAILED, Reply(0, "The address is on the suppression list."), reason="recipient_suppressed"
)
NOT_ALLOWED = DeliveryOutcome(
    DeliveryStatus.FAILED, Reply(0, "The recipient rules do not allow the address."), reason="recipient_not_allowed"
)
CAPPED = DeliveryOutcome(
    DeliveryStatus.FAILED, Reply(0, "The recipient has got as many emails as a cap allows."), reason="recipient_capped"
)
DROPPED = replace(CAPPED, status=DeliveryStatus.CANCELLED)
UNREGISTERED = DeliveryOutcome(
    DeliveryStatus.FAILED, Reply(0, "The sending domain is no longer registered."), reason="domain_not_registered"
)
# Parked, without using an attempt: the email is valid and is sent once the operator restores the APP_KEYS entry
# (docs/decisions/0071).
KEY_UNREADABLE = DeliveryOutcome(
    DeliveryStatus.PARKED,
    Reply(0, "The DKIM key of the sending domain cannot be decrypted."),
    reason="signing_key_unreadable",
    waits_for=WaitCause.SIGNING_KEY,
)
MAY_BE_SECOND_COPY = {
    "code": None,
    "enhancedCode": None,
    "message": (
        "The operator paused sending while this email was in the queue. If the database was restored from a backup "
        "then, the message may already have been delivered."
    ),
    "reason": "sending_was_paused",
}


@dataclass(frozen=True)
class Wait:
    """The wait of an email.

    stream: of the email.
    next_at: when the entry is looked at next, unless it is stopped.
    receiver: the key of the receiver whose pace it waits for, if it waits for one.
    per_minute: the messages a minute that leave for this receiver now; None if a connection is waited for.
    may_go_on: whether the next transport of its route may get it at next_at.
    number: the messages of the day of a new address, if it has sent them to this receiver.
    """

    cause: WaitCause
    since: datetime
    stream: str
    next_at: datetime
    receiver: str | None = None
    per_minute: float | None = None
    may_go_on: bool = False
    number: int | None = None

    @property
    def detail(self) -> str:
        return self.describe(format_datetime(self.next_at))

    def describe(self, next_at: str) -> CodedText:
        """Return a message that says what ends the wait, with the time of the next look as a text."""
        rate = "" if self.per_minute is None else f"{self.per_minute:.0f}"
        name = self.receiver and settings.RECEIVERS.receiver_of_key(self.receiver).name
        code = "emails.waits_for_rate" if rate else DETAILS[self.cause]
        if self.may_go_on:
            code = LIMITED_DETAILS[code]
        if self.number is not None:
            code = "emails.waits_for_day" if self.number else "emails.waits_for_first_day"
        count = str(self.number or "")
        return CodedText(code, stream=self.stream, at=next_at, receiver=name or "", rate=rate, number=count)


def find_wait(email: Email) -> Wait | None:
    """Return what an email waits for; None if it is finished, being sent, about to be, or scheduled for later.

    The wait is that of the recipient with the first cause. It begins with the cause, when the recipient was due, or
    with its last attempt, whichever was last.
    """
    rows = run(WAIT, [to_uuid(email.id)]) if email.finished_at is None else []
    for *row, first_due_at in rows:
        wait = _wait(email, *row)
        return replace(wait, may_go_on=bool(wait.receiver) and wait.next_at < first_due_at + max_age())
    return None


def check_jobs(jobs: Sequence[SendJob]) -> list[SendJob]:
    """Return the claimed jobs that may be sent now, with their diversion.

    Hold those of paused streams, and record the others as refused.
    """
    unpaused = _hold_paused(jobs)
    if not unpaused:
        return []
    _note_second_copies(unpaused)
    suppressed = find_suppressed_sendings({_sending(job) for job in unpaused if not job.is_test})
    refusals = {job.key: _refusal(job, suppressed) for job in unpaused}
    refusals |= _capped([job for job in unpaused if not refusals[job.key]])
    if refused := [SendResult(job.claim, outcome) for job in unpaused if (outcome := refusals[job.key])]:
        record_results(refused)
    return divert_jobs([job for job in unpaused if not refusals[job.key]])


def release_resumed() -> list[str]:
    """Make held entries of resumed streams ready, up to BATCH_SIZE; return the workspace of each."""
    return [from_uuid(workspace, prefix="ws_") for (workspace,) in run_replanned(RELEASE, {})]


def pause_sending() -> None:
    """Stop workers from claiming and promoting emails; sends in progress finish. Pausing again changes nothing."""
    SendingPause.objects.bulk_create([SendingPause()], ignore_conflicts=True)


@transaction.atomic
def resume_sending() -> None:
    """Let workers claim emails again, within seconds."""
    for pause in SendingPause.objects.select_for_update():
        PastSendingPause.objects.create(since=pause.since)
        pause.delete()


def paused_since() -> datetime | None:
    """Return the time since which sending is paused; None while it is not."""
    return SendingPause.objects.values_list("since", flat=True).first()


def is_sending_paused() -> bool:
    """Return whether sending is paused."""
    return SendingPause.objects.exists()


def _wait(email: Email, name: str, since: datetime, next_at: datetime, pair: int | None) -> Wait:
    cause = _known(name)
    if cause is not WaitCause.RECEIVER_PACE or pair is None:
        return Wait(cause, since, email.stream, next_at)
    wait = read_wait(pair)
    rate = wait.per_minute if wait.number is None else 0.0
    return Wait(cause, since, email.stream, next_at, wait.receiver, rate, number=wait.number)


def _known(cause: str) -> WaitCause:
    """Return a stored cause; one of a later version is shown as a retry."""
    return WaitCause(cause) if cause in WaitCause.values else WaitCause.RETRY


def _hold_paused(jobs: Sequence[SendJob]) -> list[SendJob]:
    """Hold the jobs of paused streams and the next ready entries of these streams; return the other jobs."""
    paused: dict[Stream, list[SendJob]] = {}
    for job in jobs:
        if job.properties and job.properties.paused_at:
            paused.setdefault(job.properties, []).append(job)
    if paused:
        with transaction.atomic():
            for stream, held in paused.items():
                _hold(stream, held)
    return [job for job in jobs if job.properties not in paused]


def _hold(stream: Stream, jobs: Sequence[SendJob]) -> None:
    """Hold jobs of a stream, without using an attempt, and its next entries."""
    claims = [job.claim for job in jobs]
    changes = f"{HOLD}, attempts = attempts - 1{FORGET_UNASSIGNED}"
    held = QUEUE.update_leased(claims, changes, number=stream.number)
    values = {
        "workspace": to_uuid(stream.workspace_id, prefix="ws_"),
        "stream": stream.slug,
        "rank": stream.rank,
        "number": stream.number,
    }
    further = run_replanned(HOLD_NEXT, values)
    counters.add(queue_stats.delayed_changes([stream.workspace_id] * (len(held) + len(further))))


@transaction.atomic
def _note_second_copies(jobs: Sequence[SendJob]) -> None:
    """Add an event for each message that may have been sent before the database was restored."""
    record_events(
        [
            NewEvent(EventKind.DEFERRED, job.email_id, job.key, job.address, MAY_BE_SECOND_COPY)
            for job in jobs
            if job.may_be_second_copy
        ]
    )


def _refusal(job: SendJob, suppressed: Container[Sending]) -> DeliveryOutcome | None:
    """Return the reason why a recipient may not be sent to; it arose after the email was accepted."""
    if job.expiry.is_over():
        return expired_outcome(handed_to=job.claim.handed_to, cause=WaitCause.RETRY if job.last_reason else "")
    if job.last_reason == CAPPED.reason:
        return DROPPED
    if is_refused(job.treatment):
        return NOT_ALLOWED
    if not job.is_test and _sending(job) in suppressed:
        return SUPPRESSED
    if job.identity is None:
        return UNREGISTERED
    return None if job.identity.key else KEY_UNREADABLE


def _capped(jobs: Sequence[SendJob]) -> dict[str, DeliveryOutcome]:
    """Count the recipients that get their message now for the caps of this time; return those that exceed one.

    A later attempt is not counted again, nor is one that was counted at acceptance while that counts.
    """
    counted = [job for job in jobs if job.caps and job.claim.attempt == 1 and not _is_elsewhere(job)]
    if not counted:
        return {}
    with transaction.atomic():
        results = count_recipients(
            [[CountedRecipient(to_uuid(job.key), job.address, job.template_id, job.caps)] for job in counted]
        )
    outcomes = {Exceeding.REFUSE: CAPPED, Exceeding.DROP: DROPPED}
    return {job.key: outcomes[one.exceeding] for job, (one,) in zip(counted, results, strict=True) if one}


def _is_elsewhere(job: SendJob) -> bool:
    """Return whether the recipient does not get the message: it is diverted, simulated or of a test email."""
    is_diverted = settings.RECIPIENTS.diversion or job.treatment or job.is_diverted or job.diversion
    return bool(is_diverted) or not leaves_to(job.address, is_test=job.is_test)


def _sending(job: SendJob) -> Sending:
    return job.claim.workspace_id, job.address, job.stream
