"""The wake-up of domain checks; it may be lost or run twice."""

from celery import shared_task

from domains.check_processor import domain_checks_processor


@shared_task(name="domains.tasks.drain", ignore_result=True)
def process_queue() -> None:
    """Check the domains that are due."""
    domain_checks_processor().run_notified()
