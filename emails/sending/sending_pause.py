"""Keep all mail from leaving, and let it go: for a database that was restored (docs/decisions/0060).

Nothing else changes: emails are accepted, cancelled and counted, webhooks are posted, reports are taken.
"""

from emails.models import Hold


def hold_sending() -> None:
    """Let no worker claim an email from now on; what is under way ends. Holding again changes nothing."""
    Hold.objects.bulk_create([Hold()], ignore_conflicts=True)


def release_sending() -> None:
    """Let workers claim again, within seconds."""
    Hold.objects.all().delete()


def is_held() -> bool:
    return Hold.objects.exists()
