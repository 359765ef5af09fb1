"""Queue a mail of the service itself; a worker sends it (docs/decisions/0054)."""

from django.db import transaction

from lib.worker import wakeup
from system_mail.models import SystemMail
from system_mail.sending import KIND

Kind = SystemMail.Kind


def queue_mail(*, to: str, kind: Kind, subject: str, text: str) -> SystemMail:
    """Queue a message in the caller's transaction; it leaves once that is committed, whatever process dies.

    text: plain, with whole URLs on lines of their own. Line breaks in the subject become spaces.
    """
    mail = _write(to, kind, subject, text, SystemMail.State.WAITING)
    transaction.on_commit(lambda: wakeup.ring_soon(KIND))
    return mail


def pretend_to_queue(*, to: str, kind: Kind, subject: str, text: str) -> None:
    """Do what `queue_mail` does for an address without an account: as much work, and nothing leaves."""
    _write(to, kind, subject, text, SystemMail.State.NOBODY)
    transaction.on_commit(lambda: wakeup.ring_soon(KIND))


def _write(to: str, kind: Kind, subject: str, text: str, state: SystemMail.State) -> SystemMail:
    mail = SystemMail(kind=kind, recipient=to, subject=" ".join(subject.split())[:200], state=state).with_text(text)
    mail.save(force_insert=True)
    return mail
