"""Sending pause: stops all sending after a database was restored (docs/decisions/0060, 0092).

Nothing else changes: emails are accepted, cancelled and counted, webhooks are delivered, reports are received. No queue
entry is claimed or promoted, so scheduled emails stay scheduled.
"""

from collections.abc import Collection
from datetime import datetime

from django.db import transaction

from emails.models import PastSendingPause, SendingPause
from emails.sending.jobs import SendJob
from events.kinds import EventKind
from events.recording import NewEvent, record_events

MAY_BE_SECOND_COPY = {
    "code": None,
    "enhancedCode": None,
    "message": (
        "The operator paused sending while this email was in the queue. If the database was restored from a backup "
        "then, the message may already have been delivered."
    ),
    "reason": "sending_was_paused",
}


def pause_sending() -> None:
    """Stop workers from claiming emails; sends in progress finish. Pausing again changes nothing."""
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


@transaction.atomic
def note_second_copies(jobs: Collection[SendJob]) -> None:
    """Add an event for each message that may have been sent before the database was restored."""
    record_events(
        [
            NewEvent(EventKind.DEFERRED, job.email_id, job.key, job.address, MAY_BE_SECOND_COPY)
            for job in jobs
            if job.may_be_second_copy
        ]
    )
