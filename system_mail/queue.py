"""Queue operations for system emails, with the database's clock.

A claim sets due_at to the end of the lease, so the system emails of a dead worker become due again.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta

from django.db import connection
from django.db.models import QuerySet, Value
from django.db.models.functions import Now

from lib.ids import from_uuid
from lib.worker.leases import LEASE_SECONDS
from system_mail.models import SystemMail, SystemMailState

CLAIM = """
UPDATE system_mail_systemmail
   SET due_at = now() + make_interval(secs => %s), fence = fence + 1, attempts = attempts + 1
 WHERE id IN (SELECT id FROM system_mail_systemmail WHERE state = 'waiting' AND due_at <= statement_timestamp()
               ORDER BY due_at LIMIT %s FOR UPDATE SKIP LOCKED)
RETURNING id
"""
RETENTION = timedelta(days=30)


@dataclass(frozen=True)
class SystemMailClaim:
    """A leased system email, valid while its fence is unchanged. attempt: from 1. age: when it was claimed."""

    id: str
    fence: int
    attempt: int
    age: timedelta


def claim(limit: int) -> list[SystemMail]:
    """Lease up to limit due system emails."""
    with connection.cursor() as cursor:
        cursor.execute(CLAIM, [LEASE_SECONDS, limit])
        ids = [from_uuid(row, prefix="sysm_") for (row,) in cursor.fetchall()]
    return list(SystemMail.objects.filter(id__in=ids).order_by("created_at"))


def claim_of(mail: SystemMail) -> SystemMailClaim:
    """Return the claim of a system email that was just claimed; its due_at is the end of the lease."""
    age = mail.due_at - timedelta(seconds=LEASE_SECONDS) - mail.created_at
    return SystemMailClaim(mail.id, mail.fence, mail.attempts, age)


def renew(claims: Collection[SystemMailClaim]) -> None:
    for claim in claims:
        _claimed_rows(claim).update(due_at=Now() + timedelta(seconds=LEASE_SECONDS))


def finish(claim: SystemMailClaim, *, state: SystemMailState, reply: str) -> None:
    """Set the final state and delete the text. Changes nothing if the lease was lost."""
    _claimed_rows(claim).update(state=state, reply=reply, finished_at=Now(), sealed_text=Value(""))


def defer(claim: SystemMailClaim, *, wait: timedelta, reply: str, attempts: int) -> None:
    _claimed_rows(claim).update(due_at=Now() + wait, reply=reply, attempts=attempts)


def delete_expired() -> None:
    """Delete system emails older than RETENTION, including those for addresses without an account."""
    SystemMail.objects.filter(created_at__lt=Now() - RETENTION).delete()


def erase_system_mail(address: str) -> None:
    """Delete the system emails to an address, except those still waiting to be sent."""
    SystemMail.objects.filter(recipient__iexact=address).exclude(state=SystemMailState.WAITING).delete()


def _claimed_rows(claim: SystemMailClaim) -> QuerySet[SystemMail]:
    return SystemMail.objects.filter(id=claim.id, fence=claim.fence, state=SystemMailState.WAITING)
