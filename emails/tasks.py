"""The bell's task: it carries nothing and may be lost or doubled."""

from celery import shared_task

from emails.sending import emails_drain


@shared_task(name="emails.tasks.drain", ignore_result=True)
def drain() -> None:
    """Send everything that is due."""
    emails_drain().run()
