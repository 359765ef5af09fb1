"""The bell's task: it carries nothing and may be lost or doubled."""

from celery import shared_task

from webhooks.sending import webhooks_drain


@shared_task(name="webhooks.tasks.drain", ignore_result=True)
def drain() -> None:
    """Post everything that is due."""
    webhooks_drain().run()
