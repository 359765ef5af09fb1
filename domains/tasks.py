"""The wake-up of domain checks and the cleanup of tracking hosts; a run may be lost or duplicated."""

from celery import shared_task

from domains.check_queue.processor import domain_checks_processor
from domains.tracking_hosts import delete_retired_hosts


@shared_task(name="domains.tasks.drain", ignore_result=True)
def process_queue() -> None:
    """Check the domains that are due."""
    domain_checks_processor().run_notified()


@shared_task(name="domains.tasks.expire", ignore_result=True)
def expire() -> None:
    """Delete the tracking hosts whose links no longer work."""
    delete_retired_hosts()
