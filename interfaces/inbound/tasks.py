"""Periodic tasks of the report queue: each may be lost or run twice."""

from celery import shared_task

from interfaces.inbound.processing import process_reports, purge_reports


@shared_task(name="inbound.tasks.process", ignore_result=True)
def process() -> None:
    """Process provider events, and mail reports that the inbound server did not process."""
    process_reports()


@shared_task(name="inbound.tasks.purge", ignore_result=True)
def purge() -> None:
    """Delete reports settled longer ago than the retention period."""
    purge_reports()
