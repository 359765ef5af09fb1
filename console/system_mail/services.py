"""System emails: queued here and sent by a worker (docs/decisions/0054)."""

from django.db import transaction
from django.utils.translation import get_language, override

from console.system_mail.models import SystemMail, SystemMailKind, SystemMailState
from console.system_mail.sending import KIND
from core.lib.worker import wakeup
from core.workspaces.models import User


def queue_system_mail(
    *, to: str, kind: SystemMailKind, subject: str, text: str, transport: str | None = None
) -> SystemMail:
    """Queue a system email in the caller's transaction. Once committed, it is sent even if a process dies.

    subject and text: in the active language (in_language_of). Each URL of the text has a separate line; line breaks in
    the subject become spaces.
    transport: the only one that may send it; by default those of the usual route.
    """
    mail = _create(to, kind, subject, text, SystemMailState.WAITING, transport=transport)
    transaction.on_commit(lambda: wakeup.notify_soon(KIND))
    return mail


def pretend_to_queue(*, to: str, kind: SystemMailKind, subject: str, text: str) -> None:
    """Do the same work as `queue_system_mail`, but send nothing: for an address without an account.

    The response time then does not show whether an account exists.
    """
    _create(to, kind, subject, text, SystemMailState.NOBODY)
    transaction.on_commit(lambda: wakeup.notify_soon(KIND))


def in_language_of(user: User | None) -> override:
    """Activate the language that an account has chosen; otherwise keep the active one, of the page or English."""
    return override(user.language if user and user.language else get_language())


def _create(
    to: str, kind: SystemMailKind, subject: str, text: str, state: SystemMailState, *, transport: str | None = None
) -> SystemMail:
    subject, language = " ".join(subject.split())[:200], get_language() or "en"
    mail = SystemMail(kind=kind, recipient=to, subject=subject, language=language, state=state, handed_to=transport)
    mail.with_text(text).save(force_insert=True)
    return mail
