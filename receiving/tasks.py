"""Celery tasks of receiving. They take no arguments and may be lost or run twice."""

from celery import shared_task

from core.workspaces.retention import run_alone, sweep
from receiving.deletion import delete_delivered_emails, delete_expired_emails
from receiving.received_work import received_processor


@shared_task(name="receiving.tasks.drain", ignore_result=True)
def process_queue() -> None:
    """Read every message that is due."""
    received_processor().run_notified()


@shared_task(name="receiving.tasks.expire", ignore_result=True)
def expire() -> None:
    """Delete received emails that are past the days of their route or their plan."""
    sweep("received", delete_expired_emails)


@shared_task(name="receiving.tasks.forget", ignore_result=True)
def forget() -> None:
    """Delete the emails of routes that keep nothing, once they are delivered."""
    run_alone("delivered", delete_delivered_emails())
