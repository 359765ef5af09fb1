"""Periodic tasks of the inbox."""

from celery import shared_task

from core.workspaces.retention import run_batches, sweep
from interfaces.inbound.inbox.retention import delete_expired_mail, delete_expired_system_mail


@shared_task(name="inbox.tasks.expire", ignore_result=True)
def expire() -> None:
    """Delete caught messages older than the retention period of their workspace's plan."""
    sweep("inbox", delete_expired_mail)
    run_batches(delete_expired_system_mail())
