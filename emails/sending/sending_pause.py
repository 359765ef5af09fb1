"""Sending pause: stops all sending after a database was restored (docs/decisions/0060).

Nothing else changes: emails are accepted, cancelled and counted, webhooks are delivered, reports are received.
"""

from emails.models import SendingPause


def pause_sending() -> None:
    """Stop workers from claiming emails; sends in progress finish. Pausing again changes nothing."""
    SendingPause.objects.bulk_create([SendingPause()], ignore_conflicts=True)


def resume_sending() -> None:
    """Let workers claim emails again, within seconds."""
    SendingPause.objects.all().delete()


def is_sending_paused() -> bool:
    """Return whether sending is paused."""
    return SendingPause.objects.exists()
