"""System email tasks: send, delete old rows, and check reputations. Each may be lost or run twice."""

from celery import shared_task

from system_mail.queue import purge
from system_mail.reputation.services import judge_all
from system_mail.sending import system_mail_drain


@shared_task(name="system_mail.tasks.drain", ignore_result=True)
def drain() -> None:
    """Send everything that is due."""
    system_mail_drain().run()


@shared_task(name="system_mail.tasks.expire", ignore_result=True)
def expire() -> None:
    """Delete rows past their retention."""
    purge()


@shared_task(name="reputation.tasks.judge", ignore_result=True)
def judge() -> None:
    """Warn or suspend workspaces with high bounce or complaint rates."""
    judge_all()
