"""Periodic tasks of sending domains."""

from celery import shared_task

from domains.verify import verify_due_domains


@shared_task(name="domains.tasks.verify_due", ignore_result=True)
def verify_due() -> None:
    """Check the domains that are due."""
    verify_due_domains()
