"""Sweeps of the sending domains."""

from celery import shared_task

from domains.verify import verify_due_domains


@shared_task(name="domains.tasks.verify_due", ignore_result=True)
def verify_due() -> None:
    """Check the domains whose time has come."""
    verify_due_domains()
