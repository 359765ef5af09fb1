"""Queue operations for system emails, with the database's clock.

A claim sets due_at to the end of the lease, so the system emails of a dead worker become due again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db.models.functions import Now

from console.system_mail.models import SystemMail, SystemMailKind, SystemMailState
from core.lib.ids import from_uuid, to_uuid
from core.lib.worker.lease_queue import Claim, LeaseQueue
from core.lib.worker.leases import LEASE_SECONDS
from emails.sending.retries import max_age

QUEUE = LeaseQueue(table="system_mail_systemmail", condition="state = 'waiting'")
renew = QUEUE.renew
RETENTION = timedelta(days=30)
REPORT_AGE = timedelta(days=1)


@dataclass(frozen=True)
class SystemMailClaim(Claim):
    """A leased system email.

    age: when it was claimed.
    handed_to: the transport that may have taken it before.
    max_age: the age at which it is not tried again.
    """

    age: timedelta
    handed_to: str | None = None
    max_age: timedelta = RETENTION


def claim(limit: int) -> list[Claim]:
    """Lease up to limit due system emails."""
    return [Claim(*row) for row in QUEUE.claim_due(limit)]


def load(claims: Sequence[Claim]) -> list[SystemMail]:
    ids = [from_uuid(claim.key, prefix="sysm_") for claim in claims]
    return list(SystemMail.objects.filter(id__in=ids).order_by("created_at"))


def claim_of(mail: SystemMail) -> SystemMailClaim:
    """Return the claim of a system email that was just claimed; its due_at is the end of the lease."""
    age = mail.due_at - timedelta(seconds=LEASE_SECONDS) - mail.created_at
    # RFC 8460, section 5.5: a day for a report.
    limit = min(max_age(), REPORT_AGE) if mail.kind == SystemMailKind.TLS_REPORT else max_age()
    return SystemMailClaim(to_uuid(mail.id, prefix="sysm_"), mail.fence, mail.attempts, age, mail.handed_to, limit)


def finish(claim: SystemMailClaim, *, state: SystemMailState, reply: str) -> None:
    """Set the final state and delete the text. Changes nothing if the lease was lost."""
    changes = "state = %(state)s, reply = %(reply)s, finished_at = now(), sealed_text = ''"
    QUEUE.update_leased([claim], changes, state=state.value, reply=reply)


def defer(claim: SystemMailClaim, *, wait: timedelta, reply: str, attempts: int, handed_to: str | None) -> None:
    changes = "due_at = now() + %(wait)s, reply = %(reply)s, attempts = %(attempts)s, handed_to = %(handed_to)s"
    QUEUE.update_leased([claim], changes, wait=wait, reply=reply, attempts=attempts, handed_to=handed_to)


def defer_after_crash(claim: SystemMailClaim, *, wait: timedelta, reply: str) -> None:
    """Try again later with the same transport, which may have the message."""
    QUEUE.update_leased([claim], "due_at = now() + %(wait)s, reply = %(reply)s", wait=wait, reply=reply)


def assign(claim: SystemMailClaim, transport: str) -> bool:
    """Store the transport that will get the message; return False if the lease is lost."""
    return bool(QUEUE.update_leased([claim], "handed_to = %(transport)s", transport=transport))


def delete_expired() -> None:
    """Delete system emails older than RETENTION, including those for addresses without an account."""
    SystemMail.objects.filter(created_at__lt=Now() - RETENTION).delete()


def erase_system_mail(address: str) -> None:
    """Delete the system emails to an address, except those still waiting to be sent."""
    SystemMail.objects.filter(recipient__iexact=address).exclude(state=SystemMailState.WAITING).delete()
