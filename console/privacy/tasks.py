"""Periodic task of erasures: it may be lost or run twice."""

from celery import shared_task

from console.privacy.services import process_erasures
from core.workspaces.retention import run_batches


@shared_task(name="privacy.tasks.erase", ignore_result=True)
def erase() -> None:
    """Erase the people whose erasure is due."""
    run_batches(process_erasures())
