"""The bell's task and the sweep: they carry nothing and may be lost or doubled."""

from celery import shared_task

from webhooks.retention import expired_events
from webhooks.sending.sending import webhooks_drain
from workspaces.retention import sweep


@shared_task(name="webhooks.tasks.drain", ignore_result=True)
def drain() -> None:
    """Post everything that is due."""
    webhooks_drain().run()


@shared_task(name="webhooks.tasks.expire", ignore_result=True)
def expire() -> None:
    """Delete what the plans keep no longer."""
    sweep("webhooks", expired_events)
