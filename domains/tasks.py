"""The wake-up of domain checks, received reports, and the cleanup of both and of tracking hosts.

A run may be lost or duplicated.
"""

from celery import shared_task

from core.workspaces.retention import run_alone
from domains.check_queue.processor import domain_checks_processor
from domains.reports.deletion import delete_expired_reports
from domains.reports.queue import read_due_reports
from domains.tracking_hosts import delete_retired_hosts


@shared_task(name="domains.tasks.drain", ignore_result=True)
def process_queue() -> None:
    """Check the domains that are due."""
    domain_checks_processor().run_notified()


@shared_task(name="domains.tasks.expire", ignore_result=True)
def expire() -> None:
    """Delete the tracking hosts whose links no longer work, and old reports."""
    delete_retired_hosts()
    run_alone("domain reports", delete_expired_reports())


@shared_task(name="domains.tasks.read_reports", ignore_result=True)
def read_reports() -> None:
    """Read the DMARC and TLS reports that arrived."""
    read_due_reports()
