"""Queue entries of emails, moved as a worker or the time would."""

from collections.abc import Mapping

from emails.models import QueueEntry
from emails.sending.queue import EmailClaim, WorkspaceShares
from lib.worker.lease_queue import Cursor, Stage


def claim_entries(
    limit: int = 1000, *, cap: int = 1000, in_flight: Mapping[str, int] | None = None
) -> list[EmailClaim]:
    """Lease up to limit ready entries, like a worker that begins its round robin."""
    return Cursor[EmailClaim]().claim(limit, WorkspaceShares(cap, in_flight or {}))


def make_ready() -> None:
    """End all waits, schedules and leases."""
    QueueEntry.objects.update(stage=Stage.READY)
