"""The queue's moves, each a single statement; time is the database's.

A claim moves due_at to the end of the lease, so a dead worker's mail is due again by itself.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta

from django.db import connection
from django.db.models import QuerySet, Value
from django.db.models.functions import Now

from lib.ids import from_uuid
from lib.worker.leases import LEASE_SECONDS
from system_mail.models import SystemMail

CLAIM = """
UPDATE system_mail_systemmail
   SET due_at = now() + make_interval(secs => %s), fence = fence + 1, attempts = attempts + 1
 WHERE id IN (SELECT id FROM system_mail_systemmail WHERE state = 'waiting' AND due_at <= statement_timestamp()
               ORDER BY due_at LIMIT %s FOR UPDATE SKIP LOCKED)
RETURNING id
"""
KEPT = timedelta(days=30)


@dataclass(frozen=True)
class Claim:
    """A mail that is ours while its fence stands; attempt counts from 1; age is the database's, at the claim."""

    id: str
    fence: int
    attempt: int
    age: timedelta


def claim(limit: int) -> list[SystemMail]:
    with connection.cursor() as cursor:
        cursor.execute(CLAIM, [LEASE_SECONDS, limit])
        ids = [from_uuid(row, prefix="sysm_") for (row,) in cursor.fetchall()]
    return list(SystemMail.objects.filter(id__in=ids).order_by("created_at"))


def claim_of(mail: SystemMail) -> Claim:
    """Return the claim of a mail that was just claimed; its due_at is the end of the lease."""
    age = mail.due_at - timedelta(seconds=LEASE_SECONDS) - mail.created_at
    return Claim(mail.id, mail.fence, mail.attempts, age)


def renew(claims: Collection[Claim]) -> None:
    for held in claims:
        _held(held).update(due_at=Now() + timedelta(seconds=LEASE_SECONDS))


def finish(held: Claim, *, state: SystemMail.State, reply: str) -> None:
    """End a mail; its text is forgotten. Nothing happens where the lease was lost."""
    _held(held).update(state=state, reply=reply, finished_at=Now(), sealed_text=Value(""))


def put_off(held: Claim, *, wait: timedelta, reply: str, attempts: int) -> None:
    _held(held).update(due_at=Now() + wait, reply=reply, attempts=attempts)


def purge() -> None:
    """Delete what was finished, or asked for in vain, long ago."""
    SystemMail.objects.filter(created_at__lt=Now() - KEPT).delete()


def erase(address: str) -> None:
    """Delete what the service itself has written to an address; what is on its way goes first."""
    SystemMail.objects.filter(recipient__iexact=address).exclude(state=SystemMail.State.WAITING).delete()


def _held(held: Claim) -> QuerySet[SystemMail]:
    return SystemMail.objects.filter(id=held.id, fence=held.fence, state=SystemMail.State.WAITING)
