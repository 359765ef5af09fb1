"""The bell's task and the sweep: they carry nothing and may be lost or doubled."""

from celery import shared_task

from system_mail.queue import purge
from system_mail.sending import system_mail_drain


@shared_task(name="system_mail.tasks.drain", ignore_result=True)
def drain() -> None:
    """Send everything that is due."""
    system_mail_drain().run()


@shared_task(name="system_mail.tasks.expire", ignore_result=True)
def expire() -> None:
    """Delete what staff need to see no longer."""
    purge()
