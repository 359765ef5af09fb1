"""System emails: queued here and sent by a worker (docs/decisions/0054)."""

from django.db import transaction

from lib.worker import wakeup
from system_mail.models import SystemMail, SystemMailKind, SystemMailState
from system_mail.sending import KIND


def queue_system_mail(*, to: str, kind: SystemMailKind, subject: str, text: str) -> SystemMail:
    """Queue a system email in the caller's transaction. Once committed, it is sent even if a process dies.

    text: plain text with each URL on a separate line. Line breaks in the subject become spaces.
    """
    mail = _create(to, kind, subject, text, SystemMailState.WAITING)
    transaction.on_commit(lambda: wakeup.notify_soon(KIND))
    return mail


def pretend_to_queue(*, to: str, kind: SystemMailKind, subject: str, text: str) -> None:
    """Do the same work as `queue_system_mail`, but send nothing: for an address without an account.

    The response time then does not show whether an account exists.
    """
    _create(to, kind, subject, text, SystemMailState.NOBODY)
    transaction.on_commit(lambda: wakeup.notify_soon(KIND))


def _create(to: str, kind: SystemMailKind, subject: str, text: str, state: SystemMailState) -> SystemMail:
    mail = SystemMail(kind=kind, recipient=to, subject=" ".join(subject.split())[:200], state=state).with_text(text)
    mail.save(force_insert=True)
    return mail
