"""Tasks of sending domains: each may be lost or run twice."""

from celery import shared_task

from domains.check_processor import domain_checks_processor


@shared_task(name="domains.tasks.drain", ignore_result=True)
def process_queue() -> None:
    """Check the domains that are due, after a wake-up."""
    domain_checks_processor().run()


@shared_task(name="domains.tasks.verify_due", ignore_result=True)
def verify_due() -> None:
    """Check the domains that are due, periodically."""
    domain_checks_processor().run()
