"""The sweep of the inbox."""

from celery import shared_task

from inbound.inbox.retention import expired_mail, expired_own_mail
from workspaces.retention import rested, sweep


@shared_task(name="inbox.tasks.expire", ignore_result=True)
def expire() -> None:
    """Delete caught mail that the plans keep no longer."""
    sweep("inbox", expired_mail)
    rested(expired_own_mail())
