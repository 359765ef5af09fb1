"""Periodic tasks of erasures and exports: they may be lost or run twice."""

from celery import shared_task

from console.privacy.exports import make_exports
from console.privacy.services import process_erasures
from core.workspaces.retention import run_alone


@shared_task(name="privacy.tasks.erase", ignore_result=True)
def erase() -> None:
    """Erase the people whose erasure is due."""
    run_alone("erasures", process_erasures())


@shared_task(name="privacy.tasks.export", ignore_result=True)
def export() -> None:
    """Make the exports of people that are due, and delete expired ones."""
    run_alone("exports", make_exports())
