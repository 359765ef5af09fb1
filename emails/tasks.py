"""The bell's task and the sweep: they carry nothing and may be lost or doubled."""

from celery import shared_task

from emails.sending.sending import emails_drain
from emails.upkeep.retention import expired_emails, unused_versions
from workspaces.retention import rested, sweep


@shared_task(name="emails.tasks.drain", ignore_result=True)
def drain() -> None:
    """Send everything that is due."""
    emails_drain().run()


@shared_task(name="emails.tasks.expire", ignore_result=True)
def expire() -> None:
    """Delete what the plans keep no longer."""
    sweep("emails", expired_emails)
    rested(unused_versions())
